// All kernels in plain vectors of the compiler, for any CPU.
#include "compile.h"

namespace turnstile::portable {
#include "lanes_portable.h"

#include "kinds.h"

#include "linear_kernels.h"

#include "row_kernels.h"

#include "attention_kernels.h"

#include "kernel_table.h"
}  // namespace turnstile::portable

namespace turnstile {
const KernelTable* portable_kernels() { return &portable::TABLE; }
}  // namespace turnstile
