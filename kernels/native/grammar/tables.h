// The machine's tables as kernels/pushdown_tables.py lays them out; that module defines what every number means.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally.h"

namespace grammar {

enum Mode : uint8_t { RAW = 0, TEXT = 1, JSON_STRING = 2, JSON_PLAIN = 3 };
enum Op : uint8_t {
    ALWAYS, TAKE, DONE, KEY_IN, KEY, ALL_REQUIRED, UNSEEN, ANY_UNSEEN, ALL_SEEN,
    MORE, NAME_IN, NAME, OTHER, CLOSE_OBJECT, SERVE, NEXT_ITEM, CLOSE_ARRAY, COUNT
};
enum Space : uint8_t { NO_SPACE = 0, SPACES = 1, INDENT_OUTER = 2, INDENT_INNER = 3 };
enum Mark : uint8_t { DISTINCT = 1, AWAITS = 2, TIGHT = 4, DEEPER = 8 };
enum Free : uint8_t { FREE = 1, FREE_COUNTED = 2 };
enum Partial : uint32_t { NONE = 0, UTF8_2, UTF8_3, UTF8_4, ESCAPE, HEX, HIGH, HIGH_ESCAPE, HIGH_HEX };

constexpr int DEPTH_SHIFT = 48, WIDE_AT = 62;
constexpr int32_t POP = -1, NO_CALLS = -1, CLOSE = 0x110000;
constexpr uint32_t MAX_NEWLINES = 2, MAX_INDENT = 64;   // of one run of whitespace
constexpr int64_t UNBOUNDED = int64_t(1) << 62;

// Read-only; any number of threads may use it. The arrays belong to Python objects that the machine keeps alive.
struct Tables {
    const uint8_t *mode, *space, *final, *counted, *free;
    const int32_t *edge_begin, *call_list, *call_return, *edge_low, *edge_high, *edge_target;
    const uint8_t* edge_op;
    const int64_t *edge_x, *edge_y;
    const int32_t *list_begin, *call_start;
    const int64_t *call_a, *call_b;
    const uint8_t *marks, *call_op;
    const int64_t *call_x, *call_y;
    const int32_t* keys;
    int32_t n_states;
    int32_t root;
    int64_t reach;
    bool calling_starts;   // some called rule's start state itself calls
    bool distinct, tight;  // some state has the mark, or some object remembers its names
    Tally tally;
};

}  // namespace grammar
