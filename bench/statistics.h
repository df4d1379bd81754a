// The statistics of the harness: pure functions over samples, all times in seconds.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ddl::bench {

/// The middle value, or the mean of the two middle ones. values must not be empty.
double median(std::vector<double> values);

/// Nearest rank: the smallest value that at least fraction of all values do not exceed, so always one that was
/// measured. fraction is in (0, 1]; values must not be empty.
double percentile(std::vector<double> values, double fraction);

/// The order in which contenders 0..count-1 run in one block: there and back again (A B B A), so that a machine that
/// grows slower or faster during the block treats all alike. Each block starts one contender later than the one
/// before, so that in the middle of each block another contender runs twice in a row.
std::vector<std::size_t> abba_order(std::size_t count, std::size_t block);

/// The comparison of two contenders that ran in the same blocks.
struct PairedRatio {
  /// Median over blocks of subject / peer, each taken within one block; below 1: subject is faster.
  double ratio = 1;
  double low = 1;   ///< lower quartile of the blocks' ratios
  double high = 1;  ///< upper quartile
};

/// Both hold the medians of the same blocks, in the same order, all positive, at least one. Symmetric:
/// the ratio of (a, b) is one over the ratio of (b, a).
PairedRatio paired_ratio(std::span<const double> subject, std::span<const double> peer);

/// The spread of an A/A run: nine out of ten blocks in which the same contender ran twice gave a ratio between
/// 1/spread and spread (of fewer than ten blocks: all of them). At least 1.
double aa_spread(std::span<const double> first, std::span<const double> second);

enum class Conclusion { kEqual, kFaster, kSlower };

/// A difference counts if it is larger than the spread, the difference of a contender from itself, and if three
/// quarters of the blocks agree on its direction; otherwise kEqual.
Conclusion conclude(const PairedRatio& found, double spread);
/// The conclusion as text about the subject: "2.90x faster", "1.80x slower", "equal (within 4%)", where the
/// percentage is the larger one of the spread and the difference found.
std::string conclusion_text(const PairedRatio& found, double spread);

}  // namespace ddl::bench
