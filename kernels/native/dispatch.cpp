// Chooses the instruction set once, by what this CPU can do.
#include <atomic>
#include <cstring>

#include "abi.h"
#include "calls.h"

namespace turnstile {

const KernelTable* avx512_kernels();
const KernelTable* avx2_kernels();
const KernelTable* portable_kernels();

namespace {

#if defined(__x86_64__)
bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }
bool runs_avx512() {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool runs_avx2() { return false; }
bool runs_avx512() { return false; }
#endif

// The table called `name` if this CPU runs it; "" takes the best there is.
const KernelTable* find(const char* name) {
    const auto fits = [&](const char* candidate) { return !*name || !std::strcmp(name, candidate); };
    if (fits("avx512") && runs_avx512()) return avx512_kernels();
    if (fits("avx2") && runs_avx2()) return avx2_kernels();
    return fits("portable") ? portable_kernels() : nullptr;
}

std::atomic<const KernelTable*> chosen{nullptr};

}  // namespace

const KernelTable& kernels() {
    const KernelTable* table = chosen.load(std::memory_order_acquire);
    if (!table) chosen.store(table = find(""), std::memory_order_release);
    return *table;
}

}  // namespace turnstile

TURNSTILE_API const char* turnstile_instruction_set() { return turnstile::kernels().name; }

// Use the named set ("" for the best) from now on; false, changing nothing, if this CPU or build lacks it.
// Packed weights are the same for all sets. For tests and measurements; not while another call runs.
TURNSTILE_API int32_t turnstile_use_instruction_set(const char* name) {
    const turnstile::KernelTable* table = turnstile::find(name);
    if (table) turnstile::chosen.store(table, std::memory_order_release);
    return table != nullptr;
}
