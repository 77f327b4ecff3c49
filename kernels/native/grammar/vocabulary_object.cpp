#include "objects.h"

namespace grammar {

namespace {

bool read_tokens(PyObject* token_bytes, Vocabulary& vocabulary) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(token_bytes);
    vocabulary.begin.assign(1, 0);
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* token = PySequence_Fast_GET_ITEM(token_bytes, i);
        if (!PyBytes_Check(token)) {
            PyErr_SetString(PyExc_TypeError, "every token must be bytes");
            return false;
        }
        const auto* text = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(token));
        vocabulary.bytes.insert(vocabulary.bytes.end(), text, text + PyBytes_GET_SIZE(token));
        vocabulary.begin.push_back(uint32_t(vocabulary.bytes.size()));
    }
    vocabulary.build_tries();
    return true;
}

bool read_eos_ids(PyObject* ids, Vocabulary& vocabulary) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(ids);
    for (Py_ssize_t i = 0; i < n; ++i) {
        const long token = PyLong_AsLong(PySequence_Fast_GET_ITEM(ids, i));
        if (token == -1 && PyErr_Occurred()) return false;
        if (token < 0 || size_t(token) >= vocabulary.n_tokens) {
            PyErr_Format(PyExc_ValueError, "%ld is no token of a vocabulary of %zu", token, vocabulary.n_tokens);
            return false;
        }
        vocabulary.eos_ids.push_back(int32_t(token));
        vocabulary.is_eos[size_t(token)] = 1;
    }
    return true;
}

Vocabulary* read_vocabulary(PyObject* token_bytes, PyObject* eos_ids, Py_ssize_t bytes_limit) {
    auto made = std::make_unique<Vocabulary>(size_t(PySequence_Fast_GET_SIZE(token_bytes)), size_t(bytes_limit));
    return read_tokens(token_bytes, *made) && read_eos_ids(eos_ids, *made) ? made.release() : nullptr;
}

PyObject* vocabulary_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"token_bytes", "eos_ids", "bytes_limit", nullptr};
    PyObject *token_bytes, *eos_ids;
    Py_ssize_t bytes_limit;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOn", const_cast<char**>(names), &token_bytes, &eos_ids, &bytes_limit))
        return nullptr;
    PyObject* tokens = PySequence_Fast(token_bytes, "token_bytes must be a sequence");
    PyObject* ids = tokens ? PySequence_Fast(eos_ids, "eos_ids must be a sequence") : nullptr;
    Vocabulary* vocabulary = nullptr;
    if (ids)
        vocabulary = guarded<Vocabulary*>(nullptr, [&] { return read_vocabulary(tokens, ids, bytes_limit); });
    Py_XDECREF(tokens);
    Py_XDECREF(ids);
    if (!vocabulary) return nullptr;
    auto* self = reinterpret_cast<VocabularyObject*>(type->tp_alloc(type, 0));
    if (self) self->vocabulary = vocabulary;
    else delete vocabulary;
    return reinterpret_cast<PyObject*>(self);
}

void vocabulary_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    delete reinterpret_cast<VocabularyObject*>(object)->vocabulary;
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* n_masks(PyObject* object, void*) {
    return PyLong_FromSize_t(reinterpret_cast<VocabularyObject*>(object)->vocabulary->masks.count());
}

PyObject* bytes_used(PyObject* object, void*) {
    return PyLong_FromSize_t(reinterpret_cast<VocabularyObject*>(object)->vocabulary->bytes_used());
}

PyGetSetDef getters[] = {
    {"n_masks", n_masks, nullptr, "Masks that are kept.", nullptr},
    {"bytes_used", bytes_used, nullptr, "By the masks, their keys and the masks of texts.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Vocabulary(token_bytes, eos_ids, bytes_limit): what all machines over one tokenizer share.")},
    {Py_tp_new, reinterpret_cast<void*>(vocabulary_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(vocabulary_dealloc)},
    {Py_tp_getset, getters},
    {0, nullptr}};

}  // namespace

PyType_Spec vocabulary_spec = {"kernels._grammar.Vocabulary", sizeof(VocabularyObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace grammar
