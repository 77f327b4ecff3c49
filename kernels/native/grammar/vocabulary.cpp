#include "vocabulary.h"

#include <algorithm>
#include <cstring>

namespace grammar {

namespace {

constexpr int WIDE = 6;   // characters from which a text's own mask is worth keeping

int width_of(const Charset& chars) {
    int n = chars.others ? WIDE : 0;
    for (uint64_t word : {chars.low, chars.high})
        for (; word; word &= word - 1) ++n;
    return n;
}

// Where a text returns to that is walked by itself: one frame that is never stepped, only noticed.
struct Outside {
    FrameSet set{0, nullptr, nullptr, nullptr, 1, 1, 0, 0};
    Frame frame{0, 0, 0, 0, 0, nullptr, nullptr};
};

// What the tokens of a subtree hold behind its own byte.
void add_rests(const Trie& trie, int32_t number, const std::string& rest, std::vector<Spelling>& rests) {
    const Node& node = trie.nodes[size_t(number)];
    for (int32_t child = node.first_child; child < node.first_child + node.n_children; ++child) {
        const Node& below = trie.nodes[size_t(child)];
        const std::string longer = rest + char(below.byte);
        for (int32_t i = below.first_token; i < trie.last_own_token(below); ++i)
            rests.emplace_back(longer, trie.tokens[size_t(i)]);
        add_rests(trie, child, longer, rests);
    }
}

// The state that most plain characters of a free state lead to, and the first bytes of these characters.
int32_t widest_target(const Tables& t, int32_t state, Bytes& bytes) {
    const int32_t first = t.edge_begin[state], last = t.edge_begin[state + 1];
    int32_t widest = first;
    for (int32_t e = first; e < last; ++e)
        if (t.edge_low[e] != CLOSE && t.edge_high[e] - t.edge_low[e] > t.edge_high[widest] - t.edge_low[widest]) widest = e;
    if (widest == last || t.edge_low[widest] == CLOSE || t.edge_target[widest] == state) return -1;
    bool others = true;
    for (int32_t e = first; e < last; ++e) {
        const bool leads_there = t.edge_target[e] == t.edge_target[widest];
        if (leads_there) bytes.add(std::max(t.edge_low[e], 0x20), std::min(t.edge_high[e], 0x7F));
        others &= leads_there || t.edge_high[e] < 0x80 || t.edge_low[e] == CLOSE;
    }
    if (others) bytes.add(0x80, 0xFF);
    for (uint8_t byte : {'"', '\\'}) bytes.words[byte >> 6] &= ~(uint64_t(1) << (byte & 63));
    return t.edge_target[widest];
}

Walk& walk_of_this_thread() {
    static thread_local Run run;
    static thread_local Walk walk(run);
    return walk;
}

}  // namespace

Vocabulary::Vocabulary(size_t count, size_t limit)
    : n_tokens(count), n_words((count + 31) / 32), bytes_limit(limit), is_eos(count, 0),
      masks((count + 31) / 32), texts(limit / 4) {}

void Vocabulary::build_tries() {
    characters_.resize(n_tokens);
    std::vector<Spelling> spellings, others;
    for (size_t t = 0; t < n_tokens; ++t) {
        const uint8_t* text = bytes.data() + begin[t];
        const size_t n = begin[t + 1] - begin[t];
        characters_[t] = n ? plain_characters(text, n) : -1;
        if (n) spellings.emplace_back(std::string(reinterpret_cast<const char*>(text), n), int32_t(t));
        if (n && characters_[t] < 0) others.push_back(spellings.back());
        const auto closes = [](uint8_t c) { return c == '"' || c == ']' || c == '}'; };
        closers = std::max(closers, int32_t(std::count_if(text, text + n, closes)));
    }
    all = build_trie(spellings);
    special = build_trie(others);
    special.special = true;
    plain_rows_.resize(size_t(all.longest) + 1);
}

const uint32_t* Vocabulary::plain_row(int64_t characters) {
    const size_t most = size_t(std::min<int64_t>(characters, all.longest));
    const std::lock_guard<std::mutex> lock(plain_mutex_);
    auto& row = plain_rows_[most];
    if (!row) {
        row.reset(new uint32_t[n_words]());
        for (size_t t = 0; t < n_tokens; ++t)
            if (characters_[t] >= 0 && size_t(characters_[t]) <= most) set_bit(row.get(), int32_t(t));
    }
    return row.get();
}

bool Vocabulary::compute(const Tables& tables, const FrameSet* position, int64_t limit, Patience* patience, Computed& mask) {
    Walk& walk = walk_of_this_thread();
    walk.begin(tables, limit, patience);
    walk.run().adopt(position);
    const Place place = position->place();
    const Frame& first = place.frames.front();
    Stretch stretch;
    for (const Frame& frame : place.frames)
        if (tables.mode[frame.state] != RAW && !settles(stretch)) {
            stretch = walk.stretch_of(place, frame, all.longest);
            stretch.exact &= place.frames.size() == 1;   // where one ends, another may go on
        }
    TextKey key;
    const bool alone = place.frames.size() == 1 && !(first.memory && first.memory->recording());
    if (alone && stretch.most > 0 && width_of(stretch.chars) >= WIDE && texts.key_of(tables, first, all.longest, key))
        return compute_text(walk, tables, first, stretch, key, limit, patience, mask);
    if (alone && settles(stretch) && tables.free[first.state] == FREE && tables.mode[first.state] >= JSON_STRING) {
        bool done = false;
        const bool whole = compute_beside(walk, tables, place, stretch, limit, patience, mask, done);
        if (done || !whole) return whole;
    }
    if (!walk.fill(begun(stretch, mask), place, mask.found)) return false;
    if (walk.run().may_end(place)) mask.found.add(eos_ids.data(), eos_ids.data() + eos_ids.size());
    return true;
}

// Whether a stretch tells of every plain token.
bool Vocabulary::settles(const Stretch& stretch) const {
    return stretch.chars.covers(PLAIN) && (stretch.exact || stretch.most >= all.longest);
}

// Starts a mask with what a stretch takes for certain; the trie of the tokens that are left to look at.
const Trie& Vocabulary::begun(const Stretch& stretch, Computed& mask) {
    mask.found.begin(n_words);
    mask.owner = nullptr;
    mask.base = settles(stretch) ? plain_row(stretch.most) : nullptr;
    return mask.base ? special : all;
}

// A text by itself, then what stands behind it.
bool Vocabulary::compute_text(Walk& walk, const Tables& tables, const Frame& frame, const Stretch& stretch, const TextKey& key,
                              int64_t limit, Patience* patience, Computed& mask) {
    const auto text = text_of(walk, tables, frame, stretch, key.words, limit, patience);
    if (!text) return false;
    mask.found.begin(n_words);
    mask.base = text->row.data();
    mask.owner = text;
    Place outside{{Frame{key.after, 0, frame.a, frame.b, frame.c, frame.memory, frame.link}}, nullptr};
    if (key.after == POP) outside.frames.assign(frame.link->begin(), frame.link->end());
    return walk.fill(text->rests, outside, mask.found);
}

// A name among others: nearly all characters lead to a state that reads any text (`beside`), and what begins with one of them is
// known from there. Only the tokens that go on with a listed name, or end this one, are walked. `done`: it was such a state.
bool Vocabulary::compute_beside(Walk& walk, const Tables& tables, const Place& place, const Stretch& stretch, int64_t limit,
                                Patience* patience, Computed& mask, bool& done) {
    const Frame& frame = place.frames.front();
    Bytes others;
    Frame beside = frame;
    TextKey key;
    beside.state = widest_target(tables, frame.state, others);
    if (beside.state < 0 || !texts.key_of(tables, beside, all.longest, key) || key.n_states != 1) return true;
    const auto text = text_of(walk, tables, beside, stretch, key.words, limit, patience);
    if (!text) return false;
    if (!text->has_special) return true;
    done = true;
    const auto add_others = [&](const std::vector<int32_t>& tokens) {
        for (const int32_t& token : tokens)
            if (others.has(bytes[begin[size_t(token)]])) mask.found.add(&token, &token + 1);
    };
    Place outside{{Frame{key.after, 0, frame.a, frame.b, frame.c, frame.memory, frame.link}}, nullptr};
    if (key.after == POP) outside.frames.assign(frame.link->begin(), frame.link->end());
    static thread_local Found behind;
    behind.begin(n_words);
    const Trie& trie = begun(stretch, mask);
    if (!walk.fill(text->rests, outside, behind)) return false;
    if (behind.many()) return done = false, true;
    add_others(text->special);
    add_others(behind.few());
    return walk.fill(trie, place, mask.found, nullptr, others);
}

std::shared_ptr<const Text> Vocabulary::text_of(Walk& walk, const Tables& tables, const Frame& frame, const Stretch& stretch,
                                                const Key& key, int64_t limit, Patience* patience) {
    if (auto found = texts.find(key)) return found;
    auto text = std::make_shared<Text>();
    Outside outside;
    Frame inside = frame;
    inside.link = &outside.set;
    Computed inner;
    const Trie& trie = begun(stretch, inner);
    std::vector<int32_t> exits;
    if (!walk.fill(trie, {{inside}, nullptr}, inner.found, &exits)) return nullptr;
    text->has_special = settles(stretch) && !inner.found.many();
    if (text->has_special) text->special = inner.found.few();
    text->row.resize(n_words);
    inner.write(text->row.data(), n_words);
    std::vector<Spelling> rests;
    for (int32_t node : exits) add_rests(trie, node, {}, rests);
    text->rests = build_trie(rests);
    texts.put(key, text);
    walk.begin(tables, limit, patience);
    return text;
}

void Vocabulary::add(MaskTable* table) {
    if (!next_swept_) {
        next_swept_ = table->before = table->after = table;
        return;
    }
    table->after = next_swept_;
    table->before = next_swept_->before;
    table->before->after = table->after->before = table;
}

void Vocabulary::remove(MaskTable* table) {
    if (next_swept_ == table) next_swept_ = table->after == table ? nullptr : table->after;
    table->before->after = table->after;
    table->after->before = table->before;
}

void Vocabulary::make_room() {
    MaskTable* first = next_swept_;
    for (int round = 0; round < 2 && first && bytes_used() > bytes_limit;) {   // the first round may find all in use lately
        next_swept_->sweep();
        next_swept_ = next_swept_->after;
        if (next_swept_ == first) ++round;
    }
}

}  // namespace grammar
