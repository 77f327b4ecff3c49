// The library's own small pool of threads: one caller at a time hands out numbered tasks.
#pragma once

#include <cstdint>
#include <type_traits>

namespace turnstile {

// Threads that calls may use, the caller's own included.
int pool_threads();
void set_pool_threads(int threads);

// Calls call(context, i) once for every i in [0, tasks), spread over the pool's threads; returns when all are done.
// A second caller meanwhile, or a call from within a task, runs its tasks itself. Which thread runs a task is
// not determined, so a task's result must not depend on it.
void run_tasks(int64_t tasks, void (*call)(void*, int64_t), void* context);

template <class Body>
void parallel(int64_t tasks, Body&& body) {
    run_tasks(tasks, [](void* context, int64_t i) { (*static_cast<std::remove_reference_t<Body>*>(context))(i); }, &body);
}

// At least `bytes` of this thread's own memory, aligned to 64; valid until the thread's next call with the same slot.
// Slots 0 and 1 are separate, so that a task and its caller on one thread do not share.
void* thread_scratch(int slot, int64_t bytes);

}  // namespace turnstile
