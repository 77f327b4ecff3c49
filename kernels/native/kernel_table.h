// The table of the kernels compiled above. Included once per instruction set, last.

const KernelTable TABLE = {NAME,
                           DIRECT_ROWS * DIRECT_BLOCKS,
                           BLOCK_ROWS,
                           DIRECT_PANELS > BLOCK_PANELS ? DIRECT_PANELS : BLOCK_PANELS,
                           scratch_bytes,
                           linear_direct,
                           linear_blocked,
                           attend,
                           fold,
                           rms_norm,
                           swiglu,
                           rotate,
                           mask,
                           weights};
