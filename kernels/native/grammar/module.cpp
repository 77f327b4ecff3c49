#include "objects.h"

namespace grammar {

namespace {

constexpr int INTERFACE_VERSION = 1;   // raised whenever Python code of another version could not work with this module

bool add_type(PyObject* module, PyType_Spec& spec, PyTypeObject*& type) {
    type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return type && PyModule_AddType(module, type) == 0;
}

int execute(PyObject* module) {
    auto* types = static_cast<Types*>(PyModule_GetState(module));
    const bool whole = add_type(module, vocabulary_spec, types->vocabulary) && add_type(module, machine_spec, types->machine) &&
                       add_type(module, matcher_spec, types->matcher) &&
                       PyModule_AddIntConstant(module, "INTERFACE_VERSION", INTERFACE_VERSION) == 0;
    return whole ? 0 : -1;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
    auto* types = static_cast<Types*>(PyModule_GetState(module));
    if (!types) return 0;
    Py_VISIT(types->vocabulary);
    Py_VISIT(types->machine);
    Py_VISIT(types->matcher);
    return 0;
}

int clear(PyObject* module) {
    auto* types = static_cast<Types*>(PyModule_GetState(module));
    if (!types) return 0;
    Py_CLEAR(types->vocabulary);
    Py_CLEAR(types->machine);
    Py_CLEAR(types->matcher);
    return 0;
}

PyMethodDef functions[] = {
    {"fill_masks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fill_masks)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}, {0, nullptr}};

}  // namespace

PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "_grammar", "Grammars over a vocabulary: positions, masks and their caches.", sizeof(Types), functions,
    slots, traverse, clear, nullptr};

}  // namespace grammar

PyMODINIT_FUNC PyInit__grammar() { return PyModuleDef_Init(&grammar::module_def); }
