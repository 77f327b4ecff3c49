// Hash tables over objects that carry their own hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace grammar {

inline uint64_t mixed(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

// Objects that are only added, and forgotten together.
template <typename T>
class Slots {
  public:
    template <typename Same>
    T* find(uint64_t hash, Same same) const {
        if (slots_.empty()) return nullptr;
        for (size_t slot = hash & (slots_.size() - 1); slots_[slot]; slot = (slot + 1) & (slots_.size() - 1))
            if (slots_[slot]->hash == hash && same(*slots_[slot])) return slots_[slot];
        return nullptr;
    }

    void add(T* item) {
        items_.push_back(item);
        if (2 * items_.size() > slots_.size()) return rehash(slots_.empty() ? 32 : 4 * slots_.size());
        place(item);
    }

    void clear() {
        if (items_.empty()) return;
        if (slots_.size() > 1024) slots_.clear();
        else slots_.assign(slots_.size(), nullptr);
        items_.clear();
    }

    const std::vector<T*>& items() const { return items_; }   // in the order they came

  private:
    std::vector<T*> slots_, items_;

    void place(T* item) {
        size_t slot = item->hash & (slots_.size() - 1);
        while (slots_[slot]) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = item;
    }
    void rehash(size_t n) {
        slots_.assign(n, nullptr);
        for (T* item : items_) place(item);
    }
};

// Objects that come and go, chained by their `next`.
template <typename T>
class Buckets {
  public:
    template <typename Same>
    T* find(uint64_t hash, Same same) const {
        for (T* item = buckets_[hash & (buckets_.size() - 1)]; item; item = item->next)
            if (item->hash == hash && same(*item)) return item;
        return nullptr;
    }

    void add(T* item) {
        if (count_ >= buckets_.size()) grow();
        ++count_;
        push(buckets_, item);
    }

    void remove(T* item) {
        T** at = &buckets_[item->hash & (buckets_.size() - 1)];
        while (*at != item) at = &(*at)->next;
        *at = item->next;
        --count_;
    }

    template <typename Body>
    void for_each(Body body) {   // which may free the item
        for (T* item : buckets_)
            while (item) {
                T* next = item->next;
                body(item);
                item = next;
            }
    }

    size_t count() const { return count_; }

  private:
    std::vector<T*> buckets_ = std::vector<T*>(16, nullptr);
    size_t count_ = 0;

    static void push(std::vector<T*>& buckets, T* item) {
        T*& bucket = buckets[item->hash & (buckets.size() - 1)];
        item->next = bucket;
        bucket = item;
    }
    void grow() {
        std::vector<T*> larger(buckets_.size() * 4, nullptr);
        for_each([&](T* item) { push(larger, item); });
        buckets_.swap(larger);
    }
};

}  // namespace grammar
