#include "distinct.h"

#include <algorithm>
#include <map>

#include "tables.h"

namespace grammar {

namespace {

using Span = std::pair<const int32_t*, size_t>;

int64_t index_of(Span text, int32_t point, size_t from) {
    for (size_t i = from; i < text.second; ++i)
        if (text.first[i] == point) return int64_t(i);
    return -1;
}

// Where the value at `at` ends; -1 where a string or container is cut off. A number may end with the text.
int64_t value_end(Span text, size_t at) {
    int depth = 0;
    while (at < text.second) {
        const int32_t point = text.first[at];
        if (point == '"') {
            const int64_t close = index_of(text, CLOSE, at);
            if (close < 0) return -1;
            at = size_t(close);
        } else if (point == '[' || point == '{') {
            ++depth;
        } else if (point == ']' || point == '}') {
            if (--depth < 0) return int64_t(at);
        } else if (point == ',' && !depth) {
            return int64_t(at);
        }
        ++at;
        if (!depth && (point == '"' || point == ']' || point == '}')) return int64_t(at);
    }
    return depth ? -1 : int64_t(at);
}

Points part(Span text, size_t first, size_t last) { return Points(text.first + first, text.first + last); }

// Two texts and how far they agree: the value of the used one at `at` against that of the other at `i`, which may be cut off.
struct Comparison {
    Span used, text;
    size_t at = 0, i = 0;

    enum Verdict { NO, YES, GO_ON };   // GO_ON: `at` and `i` are where the last values stand, all before being equal

    bool is_whole(int64_t end) const { return end >= 0 && size_t(end) < text.second; }
    Verdict as_verdict(bool yes) const { return yes ? YES : NO; }

    Verdict in_array() {
        if (used.first[at] != '[') return NO;
        for (++at, ++i; i < text.second;) {
            if (text.first[i] == ']') return as_verdict(used.first[at] == ']');
            const int64_t end = value_end(text, i);
            if (!is_whole(end)) return GO_ON;
            const size_t used_end = size_t(value_end(used, at));
            if (normalised(part(text, i, size_t(end))) != part(used, at, used_end)) return NO;
            if (used.first[used_end] != text.first[end]) return NO;
            const bool comma = text.first[end] == ',';
            at = used_end + comma, i = size_t(end) + comma;
        }
        return YES;
    }

    Verdict in_object() {
        if (used.first[at] != '{') return NO;
        std::map<Points, size_t> left = members();
        for (++i; i < text.second;) {
            if (text.first[i] == '}') return as_verdict(left.empty());
            const int64_t close = index_of(text, CLOSE, i);
            if (close < 0) return as_verdict(some_name_begins(left));
            const auto found = left.find(part(text, i, size_t(close) + 1));
            if (found == left.end()) return NO;
            const size_t value_at = found->second;
            left.erase(found);
            i = size_t(close) + 2;
            if (i >= text.second) return YES;
            const int64_t end = value_end(text, i);
            if (!is_whole(end)) return at = value_at, GO_ON;
            if (normalised(part(text, i, size_t(end))) != part(used, value_at, size_t(value_end(used, value_at)))) return NO;
            i = size_t(end);
            if (text.first[i] == ',') {
                if (left.empty()) return NO;
                ++i;
            }
        }
        return YES;
    }

    // Name with its quotes -> where its value stands, of the object at `at` of the used text.
    std::map<Points, size_t> members() const {
        std::map<Points, size_t> found;
        for (size_t member = at + 1; used.first[member] != '}';) {
            const size_t colon = size_t(index_of(used, CLOSE, member)) + 1;
            found[part(used, member, colon)] = colon + 1;
            const size_t end = size_t(value_end(used, colon + 1));
            member = end + (used.first[end] == ',');
        }
        return found;
    }

    bool some_name_begins(const std::map<Points, size_t>& left) const {
        const size_t n = text.second - i;
        return std::any_of(left.begin(), left.end(), [&](const auto& member) {
            return std::equal(text.first + i, text.first + text.second, member.first.begin(),
                              member.first.begin() + std::ptrdiff_t(std::min(n, member.first.size())));
        });
    }
};

bool extends_in_some_order(Span used, Span text) {
    for (Comparison both{used, text};;) {
        Comparison::Verdict verdict;
        const size_t at = both.at, i = both.i;
        if (i >= text.second) return true;
        if (text.first[i] == '{') {
            verdict = both.in_object();
        } else if (text.first[i] == '[') {
            verdict = both.in_array();
        } else {
            const size_t n = text.second - i;
            return n <= used.second - at && std::equal(text.first + i, text.first + text.second, used.first + at);
        }
        if (verdict != Comparison::GO_ON) return verdict == Comparison::YES;
    }
}

// One container that is open while a text is normalised: of an object, what stands before it and its members.
struct Container {
    bool is_object;
    Points before;
    std::vector<Points> members;
};

}  // namespace

void Alphabet::add(const Word& word) {
    for (int32_t point : word) {
        if (point < 128) ascii_[point >> 6] |= uint64_t(1) << (point & 63);
        else others_.push_back(point);
    }
}

Points Alphabet::sorted() const {
    Points points;
    for (int32_t point = 0; point < 128; ++point)
        if (ascii_[point >> 6] >> (point & 63) & 1) points.push_back(point);
    const size_t n_ascii = points.size();
    points.insert(points.end(), others_.begin(), others_.end());
    std::sort(points.begin() + std::ptrdiff_t(n_ascii), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

Points text_of(const Record* record, int32_t start) {
    if (!record || record->length <= start) return {};
    Points text(size_t(record->length - start));
    for (size_t i = text.size(); i-- > 0; record = record->before) text[i] = record->point;
    return text;
}

Points normalised(const Points& text) {
    if (std::find(text.begin(), text.end(), '{') == text.end()) return text;
    std::vector<Container> outer;
    Points out;
    for (size_t at = 0; at < text.size(); ++at) {
        const int32_t point = text[at];
        if (point == '"') {
            const size_t close = size_t(index_of({text.data(), text.size()}, CLOSE, at));
            out.insert(out.end(), text.begin() + std::ptrdiff_t(at), text.begin() + std::ptrdiff_t(close) + 1);
            at = close;
        } else if (point == '{') {
            outer.push_back({true, std::move(out), {}});
            out.clear();
        } else if ((point == '}' || point == ',') && !outer.empty() && outer.back().is_object) {
            Container& object = outer.back();
            if (!out.empty()) object.members.push_back(std::move(out));
            out.clear();
            if (point == ',') continue;
            std::sort(object.members.begin(), object.members.end());
            out = std::move(object.before);
            out.push_back('{');
            for (size_t n = 0; n < object.members.size(); ++n) {
                if (n) out.push_back(',');
                out.insert(out.end(), object.members[n].begin(), object.members[n].end());
            }
            out.push_back('}');
            outer.pop_back();
        } else {
            if (point == '[') outer.push_back({false, {}, {}});
            if (point == ']') outer.pop_back();
            out.push_back(point);
        }
    }
    return out;
}

bool extends(const Word& used, const Record* record, int32_t start) {
    const int32_t n = record ? record->length - start : 0;
    if (n <= 0) return true;
    if (record->brace >= start) {
        const Points text = text_of(record, start);
        return extends_in_some_order({used.begin(), used.n}, {text.data(), text.size()});
    }
    if (size_t(n) > used.n) return false;
    for (int32_t i = n; i-- > 0; record = record->before)
        if (used.begin()[i] != record->point) return false;
    return true;
}

}  // namespace grammar
