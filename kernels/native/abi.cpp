#include "abi.h"

#include <cstdint>

// Raised together with ABI_VERSION of kernels/library.py whenever arguments or layouts change.
TURNSTILE_API int32_t turnstile_abi_version() { return 2; }
