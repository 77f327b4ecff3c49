#include "objects.h"

namespace grammar {

namespace {

// Reads `T Tables::*` members by their Python names; stops at the first that is not as it should be.
class TablesReader {
  public:
    TablesReader(PyObject* source, std::vector<Py_buffer>& buffers) : source_(source), buffers_(buffers) {}

    template <typename T>
    TablesReader& read(const char* name, const T*& member, Py_ssize_t length = -1) {
        if (!whole) return *this;
        Py_ssize_t found = 0;
        member = array_of<T>(source_, name, buffers_, &found);
        whole = member != nullptr;
        if (whole && length >= 0 && found != length) {
            PyErr_Format(PyExc_ValueError, "%s has %zd items, not %zd", name, found, length);
            whole = false;
        }
        last_length = found;
        return *this;
    }

    int64_t number(const char* name) {
        PyObject* value = whole ? PyObject_GetAttrString(source_, name) : nullptr;
        const int64_t number = value ? PyLong_AsLongLong(value) : -1;
        Py_XDECREF(value);
        whole = whole && !PyErr_Occurred();
        return number;
    }

    bool whole = true;
    Py_ssize_t last_length = 0;

  private:
    PyObject* source_;
    std::vector<Py_buffer>& buffers_;
};

bool read_tally(PyObject* source, Tables& tables, std::vector<Py_buffer>& buffers) {
    PyObject* columns = PyObject_GetAttrString(source, "tally");
    if (!columns) return false;
    Tally& t = tables.tally;
    TablesReader from(columns, buffers);
    const Py_ssize_t n = from.read("object_ordered", t.object_ordered).last_length;
    from.read("object_remembers", t.object_remembers, n).read("object_names", t.object_names);
    from.read("object_numbers", t.object_numbers).read("object_least", t.object_least).read("object_most", t.object_most);
    from.read("object_obligations", t.object_obligations).read("object_rows", t.object_rows);
    from.read("number_required", t.number_required).read("number_next", t.number_next).read("number_absent", t.number_absent);
    from.read("number_choices", t.number_choices).read("choices", t.choices).read("place_counters", t.place_counters);
    from.read("place_cap", t.place_cap).read("place_strict", t.place_strict).read("place_rows", t.place_rows);
    from.read("row_begin", t.row_begin).read("row_low", t.row_low).read("row_high", t.row_high);
    t.keys = tables.keys;
    for (Py_ssize_t i = 0; from.whole && i < n; ++i) tables.distinct |= t.object_remembers[i] != 0;
    Py_DECREF(columns);
    return from.whole;
}

bool read_tables(PyObject* source, Tables& t, std::vector<Py_buffer>& buffers) {
    TablesReader from(source, buffers);
    const Py_ssize_t n = from.read("mode", t.mode).last_length;
    from.read("space", t.space, n).read("final", t.final, n).read("counted", t.counted, n).read("free", t.free, n);
    from.read("call_list", t.call_list, n).read("call_return", t.call_return, n).read("edge_begin", t.edge_begin, n + 1);
    const Py_ssize_t n_edges = from.read("edge_low", t.edge_low).last_length;
    from.read("edge_high", t.edge_high, n_edges).read("edge_target", t.edge_target, n_edges).read("edge_op", t.edge_op, n_edges);
    from.read("edge_x", t.edge_x, n_edges).read("edge_y", t.edge_y, n_edges).read("list_begin", t.list_begin);
    const Py_ssize_t n_calls = from.read("call_start", t.call_start).last_length;
    from.read("call_a", t.call_a, n_calls).read("call_b", t.call_b, n_calls).read("keys", t.keys);
    from.read("marks", t.marks, n).read("call_op", t.call_op, n_calls);
    from.read("call_x", t.call_x, n_calls).read("call_y", t.call_y, n_calls);
    t.root = int32_t(from.number("root"));
    t.reach = from.number("reach");
    t.n_states = int32_t(n);
    t.calling_starts = t.distinct = t.tight = false;
    for (Py_ssize_t i = 0; from.whole && i < n; ++i) {
        t.distinct |= (t.marks[i] & DISTINCT) != 0;
        t.tight |= (t.marks[i] & TIGHT) != 0;
    }
    for (Py_ssize_t i = 0; from.whole && i < n_calls; ++i) t.calling_starts |= t.call_list[t.call_start[i]] != NO_CALLS;
    if (from.whole && (t.root < 0 || t.root >= t.n_states)) {
        PyErr_SetString(PyExc_ValueError, "the root is no state");
        return false;
    }
    return from.whole && read_tally(source, t, buffers);
}

PyObject* machine_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"tables", "vocabulary", "context", "refuse", "mask_steps", "token_steps", nullptr};
    PyObject *tables, *vocabulary, *context, *refuse;
    long long mask_steps, token_steps;
    const auto* types = static_cast<Types*>(PyType_GetModuleState(type));
    if (!types || !PyArg_ParseTupleAndKeywords(args, keywords, "OO!OOLL", const_cast<char**>(names), &tables, types->vocabulary,
                                               &vocabulary, &context, &refuse, &mask_steps, &token_steps))
        return nullptr;
    auto* self = reinterpret_cast<MachineObject*>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    Py_INCREF(vocabulary);
    self->vocabulary = reinterpret_cast<VocabularyObject*>(vocabulary);
    self->context = Py_NewRef(context);
    self->refuse = Py_NewRef(refuse);
    const bool whole = guarded(false, [&] {
        self->buffers = new std::vector<Py_buffer>();
        Tables read;
        if (!read_tables(tables, read, *self->buffers)) return false;
        self->machine = new Machine(read, *self->vocabulary->vocabulary, mask_steps, token_steps);
        return true;
    });
    if (!whole) Py_CLEAR(self);
    return reinterpret_cast<PyObject*>(self);
}

void machine_dealloc(PyObject* object) {
    auto* self = reinterpret_cast<MachineObject*>(object);
    PyTypeObject* type = Py_TYPE(object);
    delete self->machine;
    if (self->buffers)
        for (Py_buffer& buffer : *self->buffers) PyBuffer_Release(&buffer);
    delete self->buffers;
    Py_XDECREF(self->refuse);
    Py_XDECREF(self->context);
    Py_XDECREF(self->vocabulary);
    type->tp_free(object);
    Py_DECREF(type);
}

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(
        "Machine(tables, vocabulary, context, refuse, mask_steps, token_steps): runs tables over a vocabulary. `refuse` is "
        "called with 'steps_of_one_mask' or 'steps_of_one_token' and the limit that was passed, and must raise.")},
    {Py_tp_new, reinterpret_cast<void*>(machine_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(machine_dealloc)},
    {0, nullptr}};

}  // namespace

PyType_Spec machine_spec = {"kernels._grammar.Machine", sizeof(MachineObject), 0, Py_TPFLAGS_DEFAULT, slots};

PyObject* refuse(const MachineObject* machine, const char* limit, int64_t allowed) {
    PyObject* result = PyObject_CallFunction(machine->refuse, "sL", limit, static_cast<long long>(allowed));
    if (result) {
        Py_DECREF(result);
        PyErr_Format(PyExc_RuntimeError, "%s: more than %lld", limit, static_cast<long long>(allowed));
    }
    return nullptr;
}

}  // namespace grammar
