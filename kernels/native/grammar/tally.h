// What tallied objects and arrays may still hold: the operations from MORE to COUNT, as kernels/pushdown_tally.py defines them.
#pragma once

#include <cstdint>

namespace grammar {

struct Registers { int64_t a, b, c; };

// The columns of `Tally` in kernels/pushdown_tables.py.
struct Tally {
    const uint8_t *object_ordered, *object_remembers;
    const int32_t *object_names, *object_numbers;
    const int64_t *object_least, *object_most;
    const int32_t *object_obligations, *object_rows;
    const uint8_t* number_required;
    const int64_t *number_next, *number_absent;
    const int32_t* number_choices;
    const int64_t* choices;
    const int32_t *place_counters, *place_cap;
    const uint8_t* place_strict;
    const int32_t *place_rows, *row_begin;
    const int64_t *row_low, *row_high;
    const int32_t* keys;   // of the tables

    // Whether an operation is allowed; then the registers are those after it.
    bool apply(Registers& registers, uint8_t op, int64_t x, int64_t y) const;

  private:
    bool fits(int64_t row, int64_t least, int64_t most) const;
    bool name(Registers& r, int64_t x, int64_t object) const;
    bool other(Registers& r, int64_t x, int64_t object) const;
    bool some_name(const Registers& r, int64_t range, int64_t object) const;
    bool some_value(const Registers& r, int64_t x, int64_t object) const;
    bool can_finish(const Registers& r, int64_t object, int64_t at_least) const;
    bool can_finish_unordered(const Registers& r, int64_t object, int64_t least, int64_t most) const;
    bool may_close(const Registers& r, int64_t object) const;
    bool in_array(Registers& r, uint8_t op, int64_t x, int64_t place) const;
    int64_t counted(int64_t c, int64_t object) const;
};

}  // namespace grammar
