// How frames, memories, words and records are hashed, compared and laid out: the same in arenas and in interners.
#pragma once

#include "frames.h"

namespace grammar {

uint64_t hash_of_frames(const Frames& frames, const Record* record);
uint64_t hash_of_record(const Record* before, int32_t point);
int32_t last_brace(const Record* before, int32_t point);
uint64_t hash_of_points(const int32_t* points, size_t n);
uint64_t hash_of_memory(bool inside, int32_t start, const std::vector<const Word*>& used);

bool same_set(const FrameSet& set, const Frames& frames, const Record* record);
bool same_memory(const Memory& memory, bool inside, int32_t start, const std::vector<const Word*>& used);

FrameSet* placed_set(void* at, uint64_t hash, const Frames& frames, const Record* record, uint32_t readers);
Word* placed_word(void* at, uint64_t hash, const int32_t* points, size_t n, uint32_t readers);
Memory* placed_memory(void* at, uint64_t hash, bool inside, int32_t start, const std::vector<const Word*>& used,
                      uint32_t readers);

size_t bytes_of(const FrameSet& set);
size_t bytes_of(const Word& word);
size_t bytes_of(const Memory& memory);

}  // namespace grammar
