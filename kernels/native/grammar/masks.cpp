#include "masks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace grammar {

namespace {

constexpr size_t FEW_TOKENS = 256;   // a list of so many takes less time and room than a row

void* allocate(size_t bytes) {
    void* memory = std::malloc(std::max<size_t>(bytes, 1));
    if (!memory) throw std::bad_alloc();
    return memory;
}

void begin_row(const uint32_t* base, uint32_t* row, size_t n_words) {
    base ? std::memcpy(row, base, n_words * sizeof(uint32_t)) : std::memset(row, 0, n_words * sizeof(uint32_t));
}

// Eight lanes, so that the multiplications overlap: a row is some kilobytes.
uint64_t hash_of_row(const uint32_t* words, size_t n) {
    uint64_t lanes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t lane = 0; lane < 8; ++lane) {
            uint64_t x;
            std::memcpy(&x, words + i + 2 * lane, sizeof x);
            x ^= lanes[lane];
            lanes[lane] = (x << 29 | x >> 35) * 0x9E3779B97F4A7C15ull;
        }
    for (; i < n; ++i) lanes[0] = mixed(lanes[0], words[i]);
    uint64_t h = n;
    for (uint64_t lane : lanes) h = mixed(h, lane);
    return h;
}

}  // namespace

void Found::begin(size_t n_words) {
    few_.clear();
    n_words_ = n_words;
    is_many_ = false;
}

void Found::add(const int32_t* first, const int32_t* last) {
    if (!is_many_ && few_.size() + size_t(last - first) > FEW_TOKENS) spill();
    if (!is_many_) {
        few_.insert(few_.end(), first, last);
    } else {
        for (; first != last; ++first) set_bit(row_.data(), *first);
    }
}

void Found::spill() {
    row_.assign(n_words_, 0);
    for (int32_t token : few_) set_bit(row_.data(), token);
    few_.clear();
    is_many_ = true;
}

void Found::add_to(uint32_t* row) const {
    if (!is_many_) {
        for (int32_t token : few_) set_bit(row, token);
    } else {
        for (size_t i = 0; i < n_words_; ++i) row[i] |= row_[i];
    }
}

void Computed::write(uint32_t* row, size_t n_words) const {
    begin_row(base, row, n_words);
    found.add_to(row);
}

void Mask::write(uint32_t* row, size_t n_words) const {
    begin_row(base, row, n_words);
    for (int32_t token : *this) set_bit(row, token);
}

Masks::~Masks() {   // machines are gone, and matchers with them
    rows_.for_each([](Row* row) {
        std::free(row->words);
        delete row;
    });
}

Mask* Masks::keep(Computed& computed) {
    Row* row = nullptr;
    if (uint32_t* words = computed.found.many()) {
        if (computed.base)
            for (size_t i = 0; i < n_words_; ++i) words[i] |= computed.base[i];
        row = share(words);
    }
    const std::vector<int32_t>& few = computed.found.few();
    const size_t bytes = sizeof(Mask) + few.size() * sizeof(int32_t);
    Mask* mask = row ? new (allocate(bytes)) Mask{1, 0, row->words, row, nullptr}
                     : new (allocate(bytes)) Mask{1, uint32_t(few.size()), computed.base, nullptr, computed.owner};
    std::copy(few.begin(), few.end(), reinterpret_cast<int32_t*>(mask + 1));
    ++count_;
    bytes_ += bytes;
    return mask;
}

void Masks::release(Mask* mask) {
    if (--mask->readers) return;
    --count_;
    bytes_ -= sizeof(Mask) + mask->n * sizeof(int32_t);
    if (mask->row) release(mask->row);
    mask->~Mask();
    std::free(mask);
}

Row* Masks::share(const uint32_t* words) {
    const uint64_t hash = hash_of_row(words, n_words_);
    Row* row = rows_.find(hash, [&](const Row& other) { return std::memcmp(other.words, words, row_bytes()) == 0; });
    if (!row) {
        auto* copy = static_cast<uint32_t*>(allocate(row_bytes()));
        std::memcpy(copy, words, row_bytes());
        rows_.add(row = new Row{hash, nullptr, 0, copy});
        bytes_ += sizeof(Row) + row_bytes();
    }
    ++row->readers;
    return row;
}

void Masks::release(Row* row) {
    if (--row->readers) return;
    rows_.remove(row);
    bytes_ -= sizeof(Row) + row_bytes();
    std::free(row->words);
    delete row;
}

uint64_t hash_of(const Key& key) {
    uint64_t h = key.size();
    for (uint64_t word : key) h = mixed(h, word);
    return h;
}

MaskTable::~MaskTable() {
    entries_.for_each([&](Entry* entry) { forget(entry); });
}

Mask* MaskTable::find(const Key& key, uint64_t hash) {
    Entry* entry = entries_.find(hash, [&](const Entry& other) {
        return other.length == key.size() && std::memcmp(&other + 1, key.data(), key.size() * sizeof(uint64_t)) == 0;
    });
    if (!entry) return nullptr;
    entry->used = true;
    return entry->mask;
}

void MaskTable::put(const Key& key, uint64_t hash, Mask* mask) {
    void* memory = allocate(sizeof(Entry) + key.size() * sizeof(uint64_t));
    auto* entry = new (memory) Entry{hash, nullptr, mask, uint32_t(key.size()), true};
    std::memcpy(static_cast<void*>(entry + 1), key.data(), key.size() * sizeof(uint64_t));
    entries_.add(entry);
    bytes_used_ += bytes_of(*entry);
}

void MaskTable::sweep() {
    std::vector<Entry*> unused;
    entries_.for_each([&](Entry* entry) {
        if (!entry->used) unused.push_back(entry);
        entry->used = false;
    });
    for (Entry* entry : unused) {
        entries_.remove(entry);
        forget(entry);
    }
}

void MaskTable::forget(Entry* entry) {
    bytes_used_ -= bytes_of(*entry);
    masks_.release(entry->mask);
    std::free(entry);
}

}  // namespace grammar
