// The masks of many matchers in one call.

#include <atomic>
#include <cstring>
#include <thread>

#include "objects.h"

namespace grammar {

namespace {

// One row to write. While the lock is away only `row`, `computed` and what never changes are touched.
struct Job {
    MatcherObject* matcher;
    FrameSet* position;   // kept
    Mask* known;          // kept, or null: then the mask is computed
    uint32_t* row;
    bool failed = false;
    Computed computed = {};

    Machine& machine() const { return *matcher->owner->machine; }
};

void write(Job& job, size_t n_row) {
    const size_t n_words = job.machine().vocabulary().n_words;
    if (job.matcher->ended) {
        std::memset(job.row, 0, n_row * sizeof(uint32_t));
        return;
    }
    if (job.known) {
        job.known->write(job.row, n_words);
    } else {
        try {
            job.failed = !job.machine().compute(job.position, nullptr, job.computed);
            job.computed.write(job.row, n_words);
        } catch (const std::exception&) {
            job.failed = true;
        }
    }
    std::memset(job.row + n_words, 0, (n_row - n_words) * sizeof(uint32_t));
}

void write_all(std::vector<Job>& jobs, size_t n_row, size_t n_threads) {
    std::atomic<size_t> next{0};
    const auto work = [&] {
        for (size_t i; (i = next.fetch_add(1)) < jobs.size();) write(jobs[i], n_row);
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < n_threads && i < jobs.size(); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
}

bool collect(PyObject* matchers, PyTypeObject* type, const Py_buffer& view, size_t n_row, std::vector<Job>& jobs) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(matchers);
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(matchers, i);
        if (!PyObject_TypeCheck(item, type)) {
            PyErr_SetString(PyExc_TypeError, "fill_masks takes matchers of this module");
            return false;
        }
        auto* matcher = reinterpret_cast<MatcherObject*>(item);
        Machine& machine = *matcher->owner->machine;
        if (n_row < machine.vocabulary().n_words) {
            PyErr_SetString(PyExc_ValueError, "a row is shorter than its vocabulary");
            return false;
        }
        Mask* known = matcher->ended ? nullptr : machine.known_mask(matcher->position);
        if (known) ++known->readers;
        jobs.push_back({matcher, machine.keep(matcher->position), known, static_cast<uint32_t*>(view.buf) + size_t(i) * n_row});
    }
    return true;
}

// Remembers what was computed, and lists the rows that failed.
PyObject* settle(std::vector<Job>& jobs) {
    PyObject* failed = PyList_New(0);
    for (size_t i = 0; i < jobs.size(); ++i) {
        Job& job = jobs[i];
        if (job.failed && failed) {
            PyObject* index = PyLong_FromSize_t(i);
            if (!index || PyList_Append(failed, index)) Py_CLEAR(failed);
            Py_XDECREF(index);
        } else if (!job.known && !job.failed && !job.matcher->ended) {
            job.machine().learn(job.position, job.computed);
        }
    }
    return failed;
}

void let_go(std::vector<Job>& jobs) {
    for (Job& job : jobs) {
        if (job.known) const_cast<Vocabulary&>(job.machine().vocabulary()).masks.release(job.known);
        job.machine().release(job.position);
    }
}

PyObject* fill_all(PyObject* matchers, PyTypeObject* type, const Py_buffer& view, size_t n_row, size_t n_threads) {
    std::vector<Job> jobs;
    PyObject* failed = nullptr;
    jobs.reserve(size_t(PySequence_Fast_GET_SIZE(matchers)));
    if (collect(matchers, type, view, n_row, jobs)) {
        Py_BEGIN_ALLOW_THREADS
        write_all(jobs, n_row, n_threads);
        Py_END_ALLOW_THREADS
        failed = guarded<PyObject*>(nullptr, [&] { return settle(jobs); });
    }
    let_go(jobs);
    return failed;
}

}  // namespace

PyObject* fill_masks(PyObject* module, PyObject* const* args, Py_ssize_t n_args) {
    if (n_args != 3) return PyErr_Format(PyExc_TypeError, "fill_masks takes matchers, rows and a number of threads");
    const Py_ssize_t n_threads = PyLong_AsSsize_t(args[2]);
    if (n_threads == -1 && PyErr_Occurred()) return nullptr;
    PyObject* matchers = PySequence_Tuple(args[0]);
    if (!matchers) return nullptr;
    Py_buffer view;
    PyObject* failed = nullptr;
    if (PyObject_GetBuffer(args[1], &view, PyBUF_WRITABLE | PyBUF_ND) == 0) {
        if (view.ndim != 2 || view.itemsize != sizeof(uint32_t) || view.shape[0] < PyTuple_GET_SIZE(matchers)) {
            PyErr_SetString(PyExc_ValueError, "rows must be a two-dimensional array of uint32, one row for each matcher");
        } else {
            auto* types = static_cast<Types*>(PyModule_GetState(module));
            const size_t n_row = size_t(view.shape[1]);
            failed = guarded<PyObject*>(nullptr, [&] {
                return fill_all(matchers, types->matcher, view, n_row, size_t(n_threads < 1 ? 1 : n_threads));
            });
        }
        PyBuffer_Release(&view);
    }
    Py_DECREF(matchers);
    return failed;
}

}  // namespace grammar
