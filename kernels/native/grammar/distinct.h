// Texts at places where everything must be new, as kernels/pushdown_distinct.py defines them.
#pragma once

#include <cstdint>
#include <vector>

#include "frames.h"

namespace grammar {

using Points = std::vector<int32_t>;

// The characters of some texts.
class Alphabet {
  public:
    void add(const Word& word);
    Points sorted() const;

  private:
    uint64_t ascii_[2] = {0, 0};
    Points others_;
};

// The end of a record, from `start` on.
Points text_of(const Record* record, int32_t start);

// The text of the same value with the members of every object sorted.
Points normalised(const Points& text);

// Whether the value of a used text can be written so that it begins with the end of a record, from `start` on.
bool extends(const Word& used, const Record* record, int32_t start);

}  // namespace grammar
