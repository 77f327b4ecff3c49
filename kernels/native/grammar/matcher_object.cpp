#include <cstring>

#include "objects.h"

namespace grammar {

namespace {

constexpr size_t ROLLBACK_LIMIT = 1024;   // tokens that can be taken back

MatcherObject* matcher(PyObject* object) { return reinterpret_cast<MatcherObject*>(object); }
Machine& machine(const MatcherObject* self) { return *self->owner->machine; }

PyObject* made(PyTypeObject* type, MachineObject* owner, FrameSet* position) {
    auto* self = reinterpret_cast<MatcherObject*>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    Py_INCREF(owner);
    self->owner = owner;
    self->position = owner->machine->keep(position);
    self->taken = new (std::nothrow) std::vector<FrameSet*>();
    if (self->taken) return reinterpret_cast<PyObject*>(self);
    Py_DECREF(self);
    return PyErr_NoMemory();
}

PyObject* matcher_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"machine", nullptr};
    PyObject* owner;
    PyObject* module = PyType_GetModuleByDef(type, &module_def);
    if (!module) return nullptr;
    auto* types = static_cast<Types*>(PyModule_GetState(module));
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!", const_cast<char**>(names), types->machine, &owner)) return nullptr;
    auto* of = reinterpret_cast<MachineObject*>(owner);
    return made(type, of, of->machine->start());
}

void matcher_dealloc(PyObject* object) {
    MatcherObject* self = matcher(object);
    PyTypeObject* type = Py_TYPE(object);
    if (self->taken)
        for (FrameSet* position : *self->taken) machine(self).release(position);
    delete self->taken;
    if (self->position) machine(self).release(self->position);
    Py_XDECREF(self->owner);
    type->tp_free(object);
    Py_DECREF(type);
}

// The mask of a position, computed where it is not known; null with an exception where it costs too much.
Mask* mask_of(MatcherObject* self) {
    static thread_local Computed computed;
    Machine& of = machine(self);
    if (Mask* mask = of.known_mask(self->position)) return mask;
    FrameSet* position = of.keep(self->position);
    LockWhileShort lock;
    const bool whole = of.compute(position, &lock, computed);
    lock.back();
    Mask* mask = whole ? of.learn(position, computed) : nullptr;
    of.release(position);
    if (!whole) refuse(self->owner, "steps_of_one_mask", of.mask_steps());
    return mask;
}

PyObject* fill_mask(PyObject* object, PyObject* target) {
    MatcherObject* self = matcher(object);
    Py_buffer view;
    if (PyObject_GetBuffer(target, &view, PyBUF_WRITABLE)) return nullptr;
    const size_t n_words = machine(self).vocabulary().n_words, n_row = size_t(view.len) / sizeof(uint32_t);
    auto* row = static_cast<uint32_t*>(view.buf);
    PyObject* result = nullptr;
    if (view.itemsize != sizeof(uint32_t) || n_row < n_words) {
        PyErr_Format(PyExc_ValueError, "a row must be an array of at least %zu uint32", n_words);
    } else if (self->ended) {
        std::memset(row, 0, n_row * sizeof(uint32_t));
        result = Py_NewRef(Py_None);
    } else if (Mask* mask = guarded<Mask*>(nullptr, [&] { return mask_of(self); })) {
        mask->write(row, n_words);
        std::memset(row + n_words, 0, (n_row - n_words) * sizeof(uint32_t));
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&view);
    return result;
}

void move_to(MatcherObject* self, FrameSet* position) {
    if (self->taken->size() >= 2 * ROLLBACK_LIMIT) {
        for (size_t i = 0; i < ROLLBACK_LIMIT; ++i) machine(self).release((*self->taken)[i]);
        self->taken->erase(self->taken->begin(), self->taken->begin() + ROLLBACK_LIMIT);
    }
    self->taken->push_back(self->position);
    self->position = position;
}

// 1 where the bytes were taken, 0 where they are refused, -1 with an exception.
int advance_by(MatcherObject* self, const uint8_t* bytes, size_t n) {
    return guarded(-1, [&] {
        FrameSet* to = nullptr;
        switch (machine(self).advance(self->position, bytes, n, to)) {
            case Outcome::TAKEN: move_to(self, to); return 1;
            case Outcome::REFUSED: return 0;
            default: refuse(self->owner, "steps_of_one_token", machine(self).token_steps()); return -1;
        }
    });
}

PyObject* as_bool(int taken) { return taken < 0 ? nullptr : PyBool_FromLong(taken); }

PyObject* accept(PyObject* object, PyObject* number) {
    MatcherObject* self = matcher(object);
    int overflow = 0;
    const long token = PyLong_AsLongAndOverflow(number, &overflow);
    if (token == -1 && !overflow && PyErr_Occurred()) return nullptr;
    const Vocabulary& vocabulary = machine(self).vocabulary();
    if (overflow || self->ended || token < 0 || size_t(token) >= vocabulary.n_tokens) Py_RETURN_FALSE;
    if (vocabulary.is_eos[size_t(token)]) {
        return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
            if (!machine(self).may_end(self->position)) Py_RETURN_FALSE;
            move_to(self, machine(self).keep(self->position));
            self->ended = 1;
            Py_RETURN_TRUE;
        });
    }
    const uint32_t first = vocabulary.begin[size_t(token)], last = vocabulary.begin[size_t(token) + 1];
    if (first == last) Py_RETURN_FALSE;
    return as_bool(advance_by(self, vocabulary.bytes.data() + first, last - first));
}

PyObject* advance(PyObject* object, PyObject* data) {
    MatcherObject* self = matcher(object);
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)) return nullptr;
    const int taken = self->ended ? 0 : advance_by(self, static_cast<const uint8_t*>(view.buf), size_t(view.len));
    PyBuffer_Release(&view);
    return as_bool(taken);
}

PyObject* rollback(PyObject* object, PyObject* number) {
    MatcherObject* self = matcher(object);
    const Py_ssize_t n = PyLong_AsSsize_t(number);
    if (n == -1 && PyErr_Occurred()) return nullptr;
    if (n < 0 || size_t(n) > self->taken->size())
        return PyErr_Format(PyExc_ValueError, "can't take back %zd tokens: %zu are remembered", n, self->taken->size());
    for (Py_ssize_t i = 0; i < n; ++i) {
        machine(self).release(self->position);
        self->position = self->taken->back();
        self->taken->pop_back();
    }
    if (n) self->ended = 0;
    Py_RETURN_NONE;
}

PyObject* fork_matcher(PyObject* object, PyObject*) {
    MatcherObject* self = matcher(object);
    PyObject* other = made(Py_TYPE(object), self->owner, self->position);
    if (!other) return nullptr;
    const bool copied = guarded(false, [&] {
        *matcher(other)->taken = *self->taken;
        for (FrameSet* position : *self->taken) machine(self).keep(position);
        return true;
    });
    matcher(other)->ended = self->ended;
    if (!copied) Py_CLEAR(other);
    return other;
}

PyObject* next_bytes(PyObject* object, PyObject*) {
    MatcherObject* self = matcher(object);
    return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
        Bytes bytes;
        if (!self->ended && machine(self).next_bytes(self->position, bytes) == Outcome::TOO_COSTLY)
            return refuse(self->owner, "steps_of_one_token", machine(self).token_steps());
        std::string found;
        for (int byte = 0; byte < 256; ++byte)
            if (bytes.has(uint8_t(byte))) found.push_back(char(byte));
        return PyBytes_FromStringAndSize(found.data(), Py_ssize_t(found.size()));
    });
}

PyObject* forced_bytes(PyObject* object, PyObject* number) {
    MatcherObject* self = matcher(object);
    const Py_ssize_t most = PyLong_AsSsize_t(number);
    if (most == -1 && PyErr_Occurred()) return nullptr;
    return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
        std::string bytes;
        bool ends = false;
        if (!self->ended && machine(self).forced(self->position, size_t(most < 0 ? 0 : most), bytes, ends) == Outcome::TOO_COSTLY)
            return refuse(self->owner, "steps_of_one_token", machine(self).token_steps());
        return Py_BuildValue("y#O", bytes.data(), Py_ssize_t(bytes.size()), ends ? Py_True : Py_False);
    });
}

PyObject* same_position(PyObject* object, PyObject* other) {
    if (!PyObject_TypeCheck(other, Py_TYPE(object))) Py_RETURN_FALSE;
    return PyBool_FromLong(matcher(object)->position == matcher(other)->position);
}

PyObject* may_end(PyObject* object, void*) {
    MatcherObject* self = matcher(object);
    return as_bool(guarded(-1, [&] { return int(!self->ended && machine(self).may_end(self->position)); }));
}

PyObject* ended(PyObject* object, void*) { return PyBool_FromLong(matcher(object)->ended); }
PyObject* context(PyObject* object, void*) { return Py_NewRef(matcher(object)->owner->context); }

PyMethodDef methods[] = {
    {"fill_mask", fill_mask, METH_O, nullptr},
    {"accept", accept, METH_O, nullptr},
    {"advance", advance, METH_O, nullptr},
    {"rollback", rollback, METH_O, nullptr},
    {"fork", fork_matcher, METH_NOARGS, nullptr},
    {"next_bytes", next_bytes, METH_NOARGS, nullptr},
    {"forced_bytes", forced_bytes, METH_O, nullptr},
    {"same_position", same_position, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getters[] = {
    {"may_end", may_end, nullptr, nullptr, nullptr},
    {"ended", ended, nullptr, nullptr, nullptr},
    {"context", context, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Matcher(machine): one answer so far. The stub file says what its methods do.")},
    {Py_tp_new, reinterpret_cast<void*>(matcher_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(matcher_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, nullptr}};

}  // namespace

PyType_Spec matcher_spec = {
    "kernels._grammar.Matcher", sizeof(MatcherObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace grammar
