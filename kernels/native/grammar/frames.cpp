#include "frames.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "frame_parts.h"

namespace grammar {

namespace {

constexpr size_t CHUNK_BYTES = 1 << 16;

uint64_t address(const void* pointer) { return uint64_t(uintptr_t(pointer)); }

}  // namespace

uint64_t hash_of_frames(const Frames& frames, const Record* record) {
    uint64_t h = address(record);
    for (const Frame& f : frames) {
        const uint64_t place = uint64_t(uint32_t(f.state)) << 32 | f.partial;
        const uint64_t c = uint64_t(f.c) ^ address(f.memory);
        for (uint64_t x : {place, uint64_t(f.a), uint64_t(f.b), c, address(f.link)}) h = mixed(h, x);
    }
    return h;
}

uint64_t hash_of_record(const Record* before, int32_t point) { return mixed(mixed(1, address(before)), uint32_t(point)); }

int32_t last_brace(const Record* before, int32_t point) {
    if (point == '{') return before ? before->length : 0;
    return before ? before->brace : -1;
}

uint64_t hash_of_points(const int32_t* points, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; ++i) h = mixed(h, uint32_t(points[i]));
    return h;
}

uint64_t hash_of_memory(bool inside, int32_t start, const std::vector<const Word*>& used) {
    uint64_t h = uint64_t(uint32_t(start)) << 1 | inside;
    for (const Word* word : used) h = mixed(h, address(word));
    return h;
}

bool same_set(const FrameSet& set, const Frames& frames, const Record* record) {
    return set.n == frames.size() && set.record == record && std::equal(frames.begin(), frames.end(), set.begin());
}

bool same_memory(const Memory& memory, bool inside, int32_t start, const std::vector<const Word*>& used) {
    return memory.inside == inside && memory.start == start && memory.n == used.size() &&
           std::equal(used.begin(), used.end(), memory.begin());
}

FrameSet* placed_set(void* at, uint64_t hash, const Frames& frames, const Record* record, uint32_t readers) {
    auto* set = new (at) FrameSet{hash, nullptr, record, nullptr, readers, uint32_t(frames.size()), 0, 0};
    std::memcpy(static_cast<void*>(set + 1), frames.data(), frames.size() * sizeof(Frame));
    return set;
}

Word* placed_word(void* at, uint64_t hash, const int32_t* points, size_t n, uint32_t readers) {
    auto* word = new (at) Word{hash, nullptr, readers, uint32_t(n)};
    std::copy(points, points + n, reinterpret_cast<int32_t*>(word + 1));
    return word;
}

Memory* placed_memory(void* at, uint64_t hash, bool inside, int32_t start, const std::vector<const Word*>& used,
                      uint32_t readers) {
    auto* memory = new (at) Memory{hash, nullptr, readers, uint32_t(used.size()), start, inside};
    std::copy(used.begin(), used.end(), reinterpret_cast<const Word**>(memory + 1));
    return memory;
}

size_t bytes_of(const FrameSet& set) { return sizeof(FrameSet) + set.n * sizeof(Frame); }
size_t bytes_of(const Word& word) { return sizeof(Word) + word.n * sizeof(int32_t); }
size_t bytes_of(const Memory& memory) { return sizeof(Memory) + memory.n * sizeof(Word*); }

void sort_and_drop_twins(Frames& frames) {
    if (frames.size() < 2) return;
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
}

// --- arena

FrameSet* Arena::intern(Frames& frames, const Record* record) {
    sort_and_drop_twins(frames);
    const uint64_t hash = hash_of_frames(frames, record);
    if (FrameSet* found = sets_.find(hash, [&](const FrameSet& set) { return same_set(set, frames, record); })) return found;
    void* at = allocate(sizeof(FrameSet) + frames.size() * sizeof(Frame));
    FrameSet* set = placed_set(at, hash, frames, record, TRANSIENT);
    sets_.add(set);
    return set;
}

const Record* Arena::append(const Record* before, int32_t point) {
    const uint64_t hash = hash_of_record(before, point);
    const auto same = [&](const Record& record) { return record.before == before && record.point == point; };
    if (const Record* found = records_.find(hash, same)) return found;
    const int32_t length = before ? before->length + 1 : 1;
    void* at = allocate(sizeof(Record));
    auto* record = new (at) Record{hash, nullptr, before, TRANSIENT, point, length, last_brace(before, point)};
    records_.add(record);
    return record;
}

const Word* Arena::word(const std::vector<int32_t>& points) {
    const uint64_t hash = hash_of_points(points.data(), points.size());
    const auto same = [&](const Word& word) {
        return word.n == points.size() && std::equal(points.begin(), points.end(), word.begin());
    };
    if (const Word* found = words_.find(hash, same)) return found;
    void* at = allocate(sizeof(Word) + points.size() * sizeof(int32_t));
    Word* word = placed_word(at, hash, points.data(), points.size(), TRANSIENT);
    words_.add(word);
    return word;
}

const Memory* Arena::memory(bool inside, int32_t start, std::vector<const Word*>& used) {
    if (!inside && start == UNBEGUN && used.empty()) return nullptr;
    std::sort(used.begin(), used.end());
    const uint64_t hash = hash_of_memory(inside, start, used);
    const auto same = [&](const Memory& memory) { return same_memory(memory, inside, start, used); };
    if (const Memory* found = memories_.find(hash, same)) return found;
    void* at = allocate(sizeof(Memory) + used.size() * sizeof(Word*));
    Memory* memory = placed_memory(at, hash, inside, start, used, TRANSIENT);
    memories_.add(memory);
    return memory;
}

const Memory* Arena::begun(const Memory* memory, int32_t start) {
    std::vector<const Word*> used;
    if (memory) used.assign(memory->begin(), memory->end());
    return this->memory(memory && memory->inside, start, used);
}

void Arena::adopt(const FrameSet* position) {
    std::vector<const FrameSet*> open{position};
    const auto known = [](const auto& slots, const auto* item) {
        return slots.find(item->hash, [&](const auto& other) { return &other == item; }) != nullptr;
    };
    for (const Record* record = position->record; record && !known(records_, record); record = record->before)
        records_.add(const_cast<Record*>(record));
    sets_.add(const_cast<FrameSet*>(position));
    while (!open.empty()) {
        const FrameSet* set = open.back();
        open.pop_back();
        for (const Frame& f : *set) {
            if (f.memory && !known(memories_, f.memory)) {
                memories_.add(const_cast<Memory*>(f.memory));
                for (const Word* word : *f.memory)
                    if (!known(words_, word)) words_.add(const_cast<Word*>(word));
            }
            if (!f.link || known(sets_, f.link)) continue;
            sets_.add(const_cast<FrameSet*>(f.link));
            open.push_back(f.link);
        }
    }
}

void Arena::reset() {
    sets_.clear();
    records_.clear();
    words_.clear();
    memories_.clear();
    if (bytes_ > 16 * CHUNK_BYTES) chunks_.clear();
    chunk_ = room_ = bytes_ = 0;
}

void* Arena::allocate(size_t bytes) {
    bytes_ += bytes;
    const size_t words = (bytes + 7) / 8;
    if (words > room_) {
        const size_t wanted = std::max(words, CHUNK_BYTES / 8);
        const auto chunk = [&] { return std::unique_ptr<uint64_t[]>(new uint64_t[wanted]); };
        if (words > CHUNK_BYTES / 8) chunks_.insert(chunks_.begin() + std::ptrdiff_t(chunk_), chunk());
        if (chunk_ == chunks_.size()) chunks_.push_back(chunk());
        free_ = chunks_[chunk_++].get();
        room_ = wanted;
    }
    void* memory = free_;
    free_ += words;
    room_ -= words;
    return memory;
}

}  // namespace grammar
