// What lasts of a configuration: sets, memories, words and records with their counts of readers.

#include <algorithm>
#include <cstdlib>
#include <new>

#include "frame_parts.h"
#include "frames.h"
#include "masks.h"

namespace grammar {

Interner::~Interner() {   // matchers are gone, so nothing is read any more
    sets_.for_each([&](FrameSet* set) {
        if (set->mask) masks_.release(set->mask);
        std::free(set);
    });
    records_.for_each([](Record* record) { std::free(record); });
    words_.for_each([](Word* word) { std::free(word); });
    memories_.for_each([](Memory* memory) { std::free(memory); });
}

FrameSet* Interner::keep(Place& place, const Arena& arena) {
    const std::vector<FrameSet*>& sets = arena.sets();
    std::vector<FrameSet*> made;
    const auto mark = [](const FrameSet* link) {
        if (link && link->transient()) const_cast<FrameSet*>(link)->round = 1;
    };
    for (FrameSet* set : sets)
        if (set->transient()) set->round = 0;
    for (const Frame& f : place.frames) mark(f.link);
    for (size_t i = sets.size(); i-- > 0;)
        if (sets[i]->transient() && sets[i]->round)
            for (const Frame& f : *sets[i]) mark(f.link);
    for (FrameSet* set : sets) {
        if (!set->transient() || !set->round) continue;
        Frames frames(set->begin(), set->end());
        make_lasting(frames);
        made.push_back(set->next = intern(frames, nullptr));   // the lasting twin of a transient set stands in its `next`
    }
    make_lasting(place.frames);
    FrameSet* kept = intern(place.frames, lasting(place.record));
    for (FrameSet* set : made) release(set);   // `kept` reads them now
    return kept;
}

void Interner::make_lasting(Frames& frames) {
    for (Frame& f : frames) {
        if (f.link && f.link->transient()) f.link = f.link->next;
        f.memory = lasting(f.memory);
    }
    std::sort(frames.begin(), frames.end());
    for (size_t i = 1; i < frames.size(); ++i)
        if (frames[i] == frames[i - 1]) release(frames[i].memory);
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
}

FrameSet* Interner::intern(const Frames& frames, const Record* record) {
    const uint64_t hash = hash_of_frames(frames, record);
    if (FrameSet* found = sets_.find(hash, [&](const FrameSet& set) { return same_set(set, frames, record); })) {
        ++found->readers;
        release(record);
        for (const Frame& f : frames) release(f.memory);
        return found;
    }
    FrameSet* set = placed_set(allocate(sizeof(FrameSet) + frames.size() * sizeof(Frame)), hash, frames, record, 1);
    for (const Frame& f : *set)
        if (f.link) ++const_cast<FrameSet*>(f.link)->readers;
    sets_.add(set);
    return set;
}

const Record* Interner::lasting(const Record* record) {
    std::vector<int32_t> points;   // of the transient end
    for (; record && record->readers == TRANSIENT; record = record->before) points.push_back(record->point);
    if (record) ++const_cast<Record*>(record)->readers;
    for (; !points.empty(); points.pop_back()) {
        const uint64_t hash = hash_of_record(record, points.back());
        Record* longer = records_.find(hash, [&](const Record& r) { return r.before == record && r.point == points.back(); });
        if (longer) {
            ++longer->readers;
            release(record);   // `longer` reads it already
        } else {
            const int32_t length = record ? record->length + 1 : 1;
            const int32_t brace = last_brace(record, points.back());
            longer = new (allocate(sizeof(Record))) Record{hash, nullptr, record, 1, points.back(), length, brace};
            records_.add(longer);
        }
        record = longer;
    }
    return record;
}

const Word* Interner::lasting(const Word* word) {
    Word* found = const_cast<Word*>(word);
    if (word->readers == TRANSIENT) {
        const auto same = [&](const Word& w) { return w.n == word->n && std::equal(w.begin(), w.end(), word->begin()); };
        found = words_.find(word->hash, same);
        if (!found) words_.add(found = placed_word(allocate(bytes_of(*word)), word->hash, word->begin(), word->n, 0));
    }
    ++found->readers;
    return found;
}

const Memory* Interner::lasting(const Memory* memory) {
    if (!memory) return nullptr;
    Memory* found = const_cast<Memory*>(memory);
    if (memory->readers == TRANSIENT) {
        std::vector<const Word*> used;
        for (const Word* word : *memory) used.push_back(lasting(word));
        std::sort(used.begin(), used.end());
        const uint64_t hash = hash_of_memory(memory->inside, memory->start, used);
        found = memories_.find(hash, [&](const Memory& m) { return same_memory(m, memory->inside, memory->start, used); });
        if (found) {
            for (const Word* word : used) --const_cast<Word*>(word)->readers;   // `found` reads them already
        } else {
            found = placed_memory(allocate(bytes_of(*memory)), hash, memory->inside, memory->start, used, 0);
            memories_.add(found);
        }
    }
    ++found->readers;
    return found;
}

void Interner::release(FrameSet* first) {
    if (--first->readers) return;
    dying_.push_back(first);
    while (!dying_.empty()) {
        FrameSet* set = dying_.back();
        dying_.pop_back();
        for (const Frame& f : *set) {
            release(f.memory);
            FrameSet* link = const_cast<FrameSet*>(f.link);
            if (link && --link->readers == 0) dying_.push_back(link);
        }
        release(set->record);
        if (set->mask) masks_.release(set->mask);
        sets_.remove(set);
        free(set, bytes_of(*set));
    }
}

void Interner::release(const Record* record) {
    while (record && --const_cast<Record*>(record)->readers == 0) {
        const Record* before = record->before;
        records_.remove(const_cast<Record*>(record));
        free(const_cast<Record*>(record), sizeof(Record));
        record = before;
    }
}

void Interner::release(const Memory* constant) {
    Memory* memory = const_cast<Memory*>(constant);
    if (!memory || --memory->readers) return;
    for (const Word* each : *memory) {
        Word* word = const_cast<Word*>(each);
        if (--word->readers) continue;
        words_.remove(word);
        free(word, bytes_of(*word));
    }
    memories_.remove(memory);
    free(memory, bytes_of(*memory));
}

void* Interner::allocate(size_t bytes) {
    void* memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    bytes_ += bytes;
    return memory;
}

void Interner::free(void* memory, size_t bytes) {
    bytes_ -= bytes;
    std::free(memory);
}

}  // namespace grammar
