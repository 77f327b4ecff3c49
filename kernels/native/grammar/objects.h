// The Python types of the extension module: Vocabulary, Machine, Matcher.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <memory>
#include <vector>

#include "machine.h"

namespace grammar {

struct Types {
    PyTypeObject *vocabulary, *machine, *matcher;
};

struct VocabularyObject {
    PyObject_HEAD
    Vocabulary* vocabulary;
};

struct MachineObject {
    PyObject_HEAD
    Machine* machine;
    VocabularyObject* vocabulary;
    PyObject* context;                // any object; a matcher gives it back
    PyObject* refuse;                 // called with a limit's name and value, to raise
    std::vector<Py_buffer>* buffers;  // of the tables
};

struct MatcherObject {
    PyObject_HEAD
    MachineObject* owner;
    FrameSet* position;
    std::vector<FrameSet*>* taken;   // the positions before the last tokens, the latest last
    char ended;
};

extern PyType_Spec vocabulary_spec, machine_spec, matcher_spec;
extern PyModuleDef module_def;

PyObject* fill_masks(PyObject* module, PyObject* const* args, Py_ssize_t n_args);

// Raises what the machine's owner raises for a limit; always null.
PyObject* refuse(const MachineObject* machine, const char* limit, int64_t allowed);

// Runs C++ code that may throw; a Python exception and `failed` where it does.
template <typename Result, typename Body>
Result guarded(Result failed, Body body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return failed;
}

// Lets other threads go on while a walk is long; the lock is back after `back`, and when this goes out of scope.
class LockWhileShort final : public Patience {
  public:
    ~LockWhileShort() override { back(); }
    void long_walk() override {
        if (!state_) state_ = PyEval_SaveThread();
    }
    void back() {
        if (state_) PyEval_RestoreThread(state_);
        state_ = nullptr;
    }

  private:
    PyThreadState* state_ = nullptr;
};

// A contiguous array that some object's attribute holds.
template <typename T>
const T* array_of(PyObject* owner, const char* name, std::vector<Py_buffer>& buffers, Py_ssize_t* length = nullptr) {
    PyObject* value = PyObject_GetAttrString(owner, name);
    if (!value) return nullptr;
    Py_buffer view;
    const int failed = PyObject_GetBuffer(value, &view, PyBUF_ND);
    Py_DECREF(value);
    if (failed) return nullptr;
    buffers.push_back(view);
    if (view.len && view.itemsize != sizeof(T)) {
        PyErr_Format(PyExc_ValueError, "%s must have items of %zu bytes", name, sizeof(T));
        return nullptr;
    }
    if (length) *length = view.len / view.itemsize;
    static const T nothing{};
    return view.len ? static_cast<const T*>(view.buf) : &nothing;
}

}  // namespace grammar
