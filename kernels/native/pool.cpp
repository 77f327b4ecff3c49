#include "pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include "abi.h"

namespace turnstile {
namespace {

void pause_briefly() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// The gaps between the operations of one forward pass are shorter than this, those between two steps longer.
constexpr std::chrono::microseconds SPIN{60};

class Pool {
  public:
    int threads() const { return limit_.load(std::memory_order_relaxed); }

    void set_threads(int threads) { limit_.store(threads < 1 ? 1 : threads, std::memory_order_relaxed); }

    void run(int64_t tasks, void (*call)(void*, int64_t), void* context) {
        std::unique_lock<std::mutex> sole(callers_, std::try_to_lock);
        if (tasks < 2 || threads() < 2 || !sole.owns_lock() || !start_workers()) {
            for (int64_t i = 0; i < tasks; i++) call(context, i);
            return;
        }
        call_ = call, context_ = context, tasks_ = tasks;
        next_.store(0, std::memory_order_relaxed);
        open_.store(true);
        epoch_.fetch_add(1);
        if (sleeping_.load() > 0) {
            { std::lock_guard<std::mutex> lock(sleep_); }
            wake_.notify_all();
        }
        work();
        open_.store(false);
        for (int spins = 0; active_.load() != 0; spins++)
            if (spins < 4096) pause_briefly();
            else std::this_thread::yield();
    }

  private:
    void work() {
        for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) call_(context_, i);
    }

    // Started on first use, so that a process that forks before it computes leaves no thread behind.
    bool start_workers() {
        while (started_ < threads() - 1) {
            try {
                std::thread(&Pool::serve, this, started_).detach();
            } catch (...) {
                return started_ > 0;
            }
            started_++;
        }
        return true;
    }

    void serve(int index) {
        for (uint64_t seen = 0;;) {
            seen = wait_for_change(seen);
            if (index >= threads() - 1) continue;
            // The caller may close the job at any moment: count ourselves in first, then look. Both sides use
            // sequentially consistent operations, so either the caller waits for us or we see the job closed.
            active_.fetch_add(1);
            if (open_.load()) work();
            active_.fetch_sub(1);
        }
    }

    uint64_t wait_for_change(uint64_t seen) {
        const auto until = std::chrono::steady_clock::now() + SPIN;
        do {
            for (int i = 0; i < 64; i++) {
                const uint64_t now = epoch_.load(std::memory_order_acquire);
                if (now != seen) return now;
                pause_briefly();
            }
        } while (std::chrono::steady_clock::now() < until);
        std::unique_lock<std::mutex> lock(sleep_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, [&] { return epoch_.load() != seen; });
        sleeping_.fetch_sub(1);
        return epoch_.load();
    }

    std::mutex callers_, sleep_;
    std::condition_variable wake_;
    std::atomic<int> limit_{std::thread::hardware_concurrency() ? int(std::thread::hardware_concurrency()) : 1};
    int started_ = 0;
    void (*call_)(void*, int64_t) = nullptr;
    void* context_ = nullptr;
    int64_t tasks_ = 0;
    alignas(64) std::atomic<uint64_t> epoch_{0};
    std::atomic<bool> open_{false};
    std::atomic<int> sleeping_{0};
    alignas(64) std::atomic<int64_t> next_{0};
    alignas(64) std::atomic<int> active_{0};
};

// Never destroyed: detached workers may still look at it while the process ends.
std::atomic<Pool*> pool{nullptr};

// A forked child has none of its parent's workers: it gets a pool of its own, with the same limit.
void replace_after_fork() {
    Pool* fresh = new Pool;
    fresh->set_threads(pool.load()->threads());
    pool.store(fresh);
}

Pool& the_pool() {
    static std::once_flag once;
    std::call_once(once, [] {
        pool.store(new Pool);
#if defined(__unix__) || defined(__APPLE__)
        pthread_atfork(nullptr, nullptr, replace_after_fork);
#endif
    });
    return *pool.load(std::memory_order_acquire);
}

struct Scratch {
    void* memory = nullptr;
    int64_t bytes = 0;
    ~Scratch() { std::free(memory); }
};

}  // namespace

int pool_threads() { return the_pool().threads(); }

void set_pool_threads(int threads) { the_pool().set_threads(threads); }

void run_tasks(int64_t tasks, void (*call)(void*, int64_t), void* context) { the_pool().run(tasks, call, context); }

void* thread_scratch(int slot, int64_t bytes) {
    thread_local Scratch slots[2];
    Scratch& scratch = slots[slot];
    if (scratch.bytes < bytes) {
        std::free(scratch.memory);
        scratch.bytes = (bytes + 4095) / 4096 * 4096;
        scratch.memory = std::aligned_alloc(64, size_t(scratch.bytes));
        if (!scratch.memory) throw std::bad_alloc();
    }
    return scratch.memory;
}

}  // namespace turnstile

TURNSTILE_API void turnstile_set_threads(int32_t threads) { turnstile::set_pool_threads(threads); }

TURNSTILE_API int32_t turnstile_threads() { return turnstile::pool_threads(); }
