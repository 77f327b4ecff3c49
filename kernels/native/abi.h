// The native library's outer face: plain C functions that Python calls through ctypes.
#pragma once

#if defined(_WIN32)
#define TURNSTILE_API extern "C" __declspec(dllexport)
#else
#define TURNSTILE_API extern "C" __attribute__((visibility("default")))
#endif
