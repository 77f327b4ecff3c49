// Choosing tokens: kernels/sampling.py defines which tokens of a row are kept and which of them a number stands for.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include "abi.h"
#include "calls.h"
#include "pool.h"

namespace turnstile {
namespace {

constexpr int64_t BLOCK = 256;      // tokens whose weights are summed before a block is looked into
constexpr double SMALL = 1e-30;     // a probability that sums can't tell from none

// As kernels/sampling.py lays it out.
struct Rule {
    double row, peak, u, temperature, top_k, top_p, min_p, typical_p;
};

// Tokens above `lowest` are kept, and of those with that very logit the first `n_equal`.
struct Cut {
    float lowest = -INFINITY;
    int64_t n_equal = 0;
};

struct Token {
    float logit, weight;
};

// Numbers in the order of the floats they come from.
uint32_t rank_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The sum in an order that depends on n alone, with eight sums under way.
double sum_of(const float* x, int64_t n) {
    double lanes[8] = {};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int lane = 0; lane < 8; lane++) lanes[lane] += x[i + lane];
    for (int lane = 0; i < n; i++, lane++) lanes[lane] += x[i];
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// Give tokens that a cut leaves out no weight.
void apply(const Cut& cut, const float* row, int64_t n, float* weights) {
    for (int64_t i = 0; i < n; i++) weights[i] = row[i] >= cut.lowest ? weights[i] : 0.0f;
    int64_t left = cut.n_equal;
    for (int64_t i = 0; i < n; i++)
        if (row[i] == cut.lowest && left-- <= 0) weights[i] = 0.0f;
}

// The cut after the k largest of more than k logits: one count by the upper bits, then only one of its buckets is ordered.
Cut after_largest(const float* row, int64_t n, int64_t k, float* found) {
    constexpr int SHIFT = 21;
    int32_t counts[1 << (32 - SHIFT)] = {};
    for (int64_t i = 0; i < n; i++) counts[rank_of(row[i]) >> SHIFT]++;
    int64_t above = 0, bucket = (1 << (32 - SHIFT)) - 1;
    while (above + counts[bucket] < k) above += counts[bucket--];
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++)
        if (int64_t(rank_of(row[i]) >> SHIFT) == bucket) found[m++] = row[i];
    std::nth_element(found, found + (k - above - 1), found + m, std::greater<float>());
    const float lowest = found[k - above - 1];
    above += std::count_if(found, found + m, [&](float x) { return x > lowest; });
    return {lowest, k - above};
}

// The cut after the fewest tokens, largest first, whose weights reach `wanted`: halves are split off until one logit is left.
Cut after_mass(Token* first, Token* last, double wanted) {
    double above = 0.0;
    while (true) {
        const float low = first->logit, middle = first[(last - first) / 2].logit, high = last[-1].logit;
        const float pivot = std::max(std::min(low, middle), std::min(std::max(low, middle), high));
        Token* larger = std::partition(first, last, [&](const Token& t) { return t.logit > pivot; });
        Token* equal = std::partition(larger, last, [&](const Token& t) { return t.logit == pivot; });
        double mass = 0.0;
        for (Token* t = first; t != larger; t++) mass += t->weight;
        if (above + mass >= wanted && larger != first) {
            last = larger;
            continue;
        }
        above += mass;
        int64_t n_equal = 0;
        for (Token* t = larger; t != equal && above < wanted; t++, n_equal++) above += t->weight;
        if (above >= wanted || equal == last) return {pivot, std::max<int64_t>(n_equal, 1)};
        first = equal;
    }
}

Cut after_nucleus(const float* row, const float* weights, int64_t n, double top_p, Token* found) {
    const double total = sum_of(weights, n), wanted = top_p * total;
    // Tokens that each have less than an equal share of what may be left out can't be needed, all together.
    const float least = float(std::max(total - wanted, SMALL) / double(2 * n));
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        found[m] = {row[i], weights[i]};
        m += weights[i] >= least;
    }
    return after_mass(found, found + m, wanted);
}

// The fewest tokens that make up `typical_p` of the whole, those first whose surprise is nearest to the expected one. `nearness`
// is left with what the cut compares: the distance with its sign turned.
Cut after_typical(const float* row, float* weights, int64_t n, const Rule& rule, Token* found, float* nearness) {
    const double total = sum_of(weights, n), factor = 1.0 / rule.temperature;
    double expected = 0.0;
    for (int64_t i = 0; i < n; i++)
        if (weights[i] > 0.0f) expected += weights[i] * (rule.peak - row[i]);
    expected = expected / total * factor;       // both surprises less the same logarithm
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        nearness[i] = weights[i] > 0.0f ? -std::fabs(float((rule.peak - row[i]) * factor - expected)) : -INFINITY;
        found[m] = {nearness[i], weights[i]};
        m += weights[i] > 0.0f;
    }
    return after_mass(found, found + m, rule.typical_p * total);
}

// The token at `u` when the tokens lie along [0, 1) by id, each as long as its share of the weights.
int32_t drawn(const float* weights, int64_t n, double u, double* ends) {
    const int64_t n_blocks = (n + BLOCK - 1) / BLOCK;
    double end = 0.0;
    for (int64_t b = 0; b < n_blocks; b++) ends[b] = end += sum_of(weights + b * BLOCK, std::min(BLOCK, n - b * BLOCK));
    const double target = std::min(u * end, std::nextafter(end, 0.0));
    const int64_t block = std::upper_bound(ends, ends + n_blocks, target) - ends;
    double reached = block ? ends[block - 1] : 0.0;
    int64_t last = -1;
    for (int64_t i = block * BLOCK; i < std::min(n, (block + 1) * BLOCK); i++) {
        if (weights[i] == 0.0f) continue;
        last = i;       // rounding can end the block a little before its sum
        reached += weights[i];
        if (reached > target) break;
    }
    return int32_t(last);
}

int32_t choose(const float* row, int64_t n, const Rule& rule) {
    const int64_t bytes = n * int64_t(2 * sizeof(float) + sizeof(Token)) + (n / BLOCK + 1) * int64_t(sizeof(double));
    char* scratch = static_cast<char*>(thread_scratch(1, bytes));
    Token* found = reinterpret_cast<Token*>(scratch);
    double* ends = reinterpret_cast<double*>(found + n);
    float* weights = reinterpret_cast<float*>(ends + n / BLOCK + 1);
    const float peak = float(rule.peak);
    kernels().weights(row, peak, float(1.0 / rule.temperature), n, weights);
    const int64_t k = int64_t(rule.top_k);
    if (k > 0 && k < n) apply(after_largest(row, n, k, reinterpret_cast<float*>(found)), row, n, weights);
    if (rule.top_p < 1.0) apply(after_nucleus(row, weights, n, rule.top_p, found), row, n, weights);
    if (rule.min_p > 0.0) apply({float(rule.peak + rule.temperature * std::log(rule.min_p)), n}, row, n, weights);
    if (rule.typical_p < 1.0) {
        float* nearness = weights + n;
        apply(after_typical(row, weights, n, rule, found, nearness), nearness, n, weights);
    }
    return drawn(weights, n, rule.u, ends);
}

}  // namespace
}  // namespace turnstile

using namespace turnstile;

// logits [rows, vocabulary], rows `stride` floats apart; rules [n]; tokens [n].
TURNSTILE_API void turnstile_choose(const float* logits, int64_t stride, int64_t vocabulary, const Rule* rules, int64_t n,
                                    int32_t* tokens) {
    parallel(n, [&](int64_t i) { tokens[i] = choose(logits + int64_t(rules[i].row) * stride, vocabulary, rules[i]); });
}
