// Draws a node as an SVG picture in which each core and GPU has the colour of its rank. topology_format.h declares
// the function.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "affinity/output/node_map.h"
#include "affinity/output/topology_format.h"
#include "base/svg.h"
#include "base/text.h"

namespace ddl::affinity {

namespace {

constexpr double kMaxRowWidth = 1170;  // of a row of boxes
constexpr double kGap = 8;
constexpr double kCellWidth = 27, kCellHeight = 25, kCellGap = 3;
constexpr double kKindBar = 3;  // width
constexpr double kChipHeight = 19;

/// Okabe and Ito's colours, which people with colour blindness can distinguish as well.
struct Colour {
  const char* fill;
  const char* text;
};
constexpr std::array<Colour, 8> kColours{{{"#56b4e9", "#000000"},
                                          {"#e69f00", "#000000"},
                                          {"#009e73", "#ffffff"},
                                          {"#f0e442", "#000000"},
                                          {"#cc79a7", "#000000"},
                                          {"#0072b2", "#ffffff"},
                                          {"#d55e00", "#ffffff"},
                                          {"#332288", "#ffffff"}}};
constexpr Colour kUnused{"#f3f4f6", "#57606a"};

const Colour& colour_of(const std::vector<int>& ranks) {
  return ranks.empty() ? kUnused : kColours[ranks.front() % kColours.size()];
}

struct Size {
  double width = 0;
  double height = 0;
};
/// Boxes one after the other in rows of at most this width.
struct Flow {
  std::vector<SvgPoint> places;
  Size size;

  Flow(const std::vector<Size>& boxes, double widest, double gap) {
    double x = 0, y = 0, row_height = 0;
    for (const Size& box : boxes) {
      if (x > 0 && x + box.width > widest) {
        y += row_height + gap;
        x = row_height = 0;
      }
      places.push_back({x, y});
      size.width = std::max(size.width, x + box.width);
      x += box.width + gap;
      row_height = std::max(row_height, box.height);
    }
    size.height = y + row_height;
  }
};

template <class T, class Measure>
std::vector<Size> sizes_of(const std::vector<T>& all, Measure measure) {
  std::vector<Size> sizes;
  for (const T& one : all) sizes.push_back(measure(one));
  return sizes;
}

class Picture {
 public:
  Picture(const Topology& topology, const BindingPlan& plan)
      : topology_(topology), map_(map_of(topology, plan)) {}

  std::string draw() {
    const Flow packages(sizes_of(map_.packages, [&](const auto& one) { return size_of(one); }), kMaxRowWidth,
                        2 * kGap);
    const Flow elsewhere(sizes_of(map_.elsewhere, chip_size), kMaxRowWidth, kGap);
    const std::string summary(trim(summary_line(topology_)));
    // The summary may be wider than the boxes: the text behind ": " goes on a line of its own.
    const std::size_t colon = summary.rfind(": ");
    canvas_.text({kMargin, 26}, summary.substr(0, colon), {.size = 15, .is_bold = true});
    canvas_.text({kMargin, 45}, summary.substr(colon + 2), {.size = 12, .fill = "#57606a"});
    double y = 60;
    for (std::size_t i = 0; i < map_.packages.size(); ++i)
      draw(map_.packages[i], kMargin + packages.places[i].x, y + packages.places[i].y);
    y += packages.size.height + 2 * kGap;
    if (!map_.elsewhere.empty()) {
      canvas_.text({kMargin, y + 11}, "near no single NUMA node", {.fill = "#57606a"});
      for (std::size_t i = 0; i < map_.elsewhere.size(); ++i)
        draw(map_.elsewhere[i], kMargin + elsewhere.places[i].x, y + 18 + elsewhere.places[i].y);
      y += elsewhere.size.height + 18 + 2 * kGap;
    }
    const double width = std::max({packages.size.width, elsewhere.size.width, 560.0});
    draw_legend(y);
    const double legend = kCellHeight + 15 + (topology_.core_kinds.empty() ? 0 : kCellHeight + kGap);
    return canvas_.document(width + 2 * kMargin, y + legend, summary);
  }

 private:
  static constexpr double kMargin = 20;
  static constexpr double kPadding = 8;

  // ---- L3 ----

  static std::size_t columns_of(const L3Map& l3) {
    const std::size_t cores = l3.cores.size();
    return cores <= 4 ? cores : cores <= 16 ? 4 : cores <= 32 ? 8 : 12;
  }
  static double title_height(const L3Map& l3) { return l3.name.empty() ? 0 : 13; }
  static Size size_of(const L3Map& l3) {
    const std::size_t columns = columns_of(l3), rows = (l3.cores.size() + columns - 1) / columns;
    return {static_cast<double>(columns) * (kCellWidth + kCellGap) - kCellGap + 10,
            static_cast<double>(rows) * (kCellHeight + kCellGap) - kCellGap + 10 + title_height(l3)};
  }
  void draw(const L3Map& l3, double x, double y) {
    const Size size = size_of(l3);
    canvas_.rectangle({x, y}, size.width, size.height, {.fill = "#ffffff", .stroke = "#d0d7de", .radius = 3});
    canvas_.text({x + 5, y + 13}, l3.name, {.size = 9, .fill = "#57606a"});
    const std::size_t columns = columns_of(l3);
    for (std::size_t i = 0; i < l3.cores.size(); ++i) {
      const std::size_t column = i % columns, row = i / columns;
      draw(l3.cores[i], x + 5 + static_cast<double>(column) * (kCellWidth + kCellGap),
           y + 5 + title_height(l3) + static_cast<double>(row) * (kCellHeight + kCellGap));
    }
  }

  // ---- a core ----

  void draw(const CoreMark& mark, double x, double y) {
    const Core& core = topology_.cores[mark.core];
    const CpuSet& cpus = core.cpus;
    const std::string kind = topology_.core_kinds.empty() ? "" : topology_.core_kinds[core.kind].name;
    const Colour& colour = colour_of(mark.ranks);
    const std::string ranks = list_of_numbers(mark.ranks);
    canvas_.begin_titled(fmt::format("CPUs {}{}{}", cpus.list(), kind.empty() ? "" : ", kind " + kind,
                                     mark.ranks.empty() ? "" : ", rank " + ranks));
    canvas_.rectangle({x, y}, kCellWidth, kCellHeight,
                      {.fill = colour.fill, .stroke = mark.ranks.empty() ? "#d0d7de" : "none", .radius = 2});
    if (!mark.ranks.empty()) {
      canvas_.text(
          {x + kCellWidth / 2, y + 13}, ranks,
          {.size = ranks.size() > 3 ? 8.0 : 12.0, .fill = colour.text, .anchor = "middle", .is_bold = true});
    }
    // A core of a slower kind is drawn with a bar at its left.
    if (core.kind > 0) {
      canvas_.rectangle({x, y}, kKindBar, kCellHeight, {.fill = "#24292f", .radius = 1});
    }
    const std::string name = (kind.empty() ? "" : kind + " ") + std::to_string(cpus.first());
    canvas_.text({x + kCellWidth / 2 + (core.kind > 0 ? 1 : 0), y + 22}, name,
                 {.size = name.size() > 5 ? 7.0 : 8.0, .fill = colour.text, .anchor = "middle"});
    canvas_.end_titled();
  }

  // ---- a device ----

  static std::string text_of(const DeviceMark& device) {
    const char* const who = device.ranks.size() == 1 ? "rank " : "ranks ";
    return device.name +
           (device.ranks.empty() ? "" : "  " + std::string(who) + list_of_numbers(device.ranks));
  }
  static Size chip_size(const DeviceMark& device) {
    return {5.6 * static_cast<double>(text_of(device).size()) + 14, kChipHeight};
  }
  void draw(const DeviceMark& device, double x, double y) {
    const Colour& colour = device.is_gpu ? colour_of(device.ranks) : kUnused;
    const Size size = chip_size(device);
    // GPUs have the colour of their rank, NICs a border alone: several ranks may share one.
    canvas_.rectangle({x, y}, size.width, size.height,
                      {.fill = device.is_gpu ? colour.fill : "#ffffff",
                       .stroke = "#57606a",
                       .radius = device.is_gpu ? 3.0 : 9.0});
    canvas_.text({x + size.width / 2, y + 13.5}, text_of(device),
                 {.size = 10, .fill = device.is_gpu ? colour.text : "#24292f", .anchor = "middle"});
  }

  // ---- a NUMA node ----

  struct NumaLayout {
    Flow l3s;
    Flow devices;
    Size size;
  };
  static NumaLayout layout_of(const NumaMap& numa) {
    const auto l3_sizes = sizes_of(numa.l3s, [](const auto& one) { return size_of(one); });
    // Many small L3s are drawn in several rows.
    const std::size_t a_row = numa.l3s.size() <= 2 ? 2 : numa.l3s.size() <= 8 ? 4 : 8;
    double widest = 0;
    for (std::size_t i = 0; i < std::min(a_row, l3_sizes.size()); ++i) widest += l3_sizes[i].width + kGap;
    Flow l3s(l3_sizes, std::min(widest, kMaxRowWidth - 4 * kPadding), kGap);
    const double title = 6.2 * static_cast<double>(numa.name.size());
    const double inner = std::max({l3s.size.width, title, 200.0});
    Flow devices(sizes_of(numa.devices, chip_size), inner, 5);
    Size size{std::max(inner, devices.size.width) + 2 * kPadding, 24 + l3s.size.height + kPadding};
    if (!numa.devices.empty()) size.height += devices.size.height + kPadding;
    return {std::move(l3s), std::move(devices), size};
  }
  static Size size_of(const NumaMap& numa) { return layout_of(numa).size; }
  void draw(const NumaMap& numa, double x, double y) {
    const NumaLayout layout = layout_of(numa);
    canvas_.rectangle({x, y}, layout.size.width, layout.size.height,
                      {.fill = "#eef4fb", .stroke = "#a9bfd8", .radius = 3});
    canvas_.text({x + kPadding, y + 16}, numa.name, {.is_bold = true});
    for (std::size_t i = 0; i < numa.l3s.size(); ++i)
      draw(numa.l3s[i], x + kPadding + layout.l3s.places[i].x, y + 24 + layout.l3s.places[i].y);
    for (std::size_t i = 0; i < numa.devices.size(); ++i) {
      draw(numa.devices[i], x + kPadding + layout.devices.places[i].x,
           y + 24 + layout.l3s.size.height + kPadding + layout.devices.places[i].y);
    }
  }

  // ---- a package ----

  static double title_height(const PackageMap& package) { return package.name.empty() ? 0 : 24; }
  static Flow flow_of(const PackageMap& package) {
    return {sizes_of(package.numa_nodes, [](const auto& one) { return size_of(one); }),
            kMaxRowWidth - 2 * kPadding, kGap};
  }
  static Size size_of(const PackageMap& package) {
    const Flow flow = flow_of(package);
    return {flow.size.width + 2 * kPadding, flow.size.height + 2 * kPadding + title_height(package)};
  }
  void draw(const PackageMap& package, double x, double y) {
    const Flow flow = flow_of(package);
    const Size size = size_of(package);
    canvas_.rectangle({x, y}, size.width, size.height, {.fill = "#f6f8fa", .stroke = "#d0d7de", .radius = 5});
    canvas_.text({x + kPadding, y + 20}, package.name, {.size = 12, .is_bold = true});
    for (std::size_t i = 0; i < package.numa_nodes.size(); ++i) {
      draw(package.numa_nodes[i], x + kPadding + flow.places[i].x,
           y + kPadding + title_height(package) + flow.places[i].y);
    }
  }

  void draw_legend(double y) {
    canvas_.rectangle({kMargin, y}, kCellWidth, kCellHeight, {.fill = kColours[0].fill, .radius = 2});
    canvas_.text({kMargin + kCellWidth / 2, y + 13}, "r", {.size = 12, .anchor = "middle", .is_bold = true});
    canvas_.text({kMargin + kCellWidth / 2, y + 22}, "n", {.size = 8, .anchor = "middle"});
    canvas_.text({kMargin + 34, y + 16}, "core of local rank r; its first CPU is n", {});
    canvas_.rectangle({kMargin + 270, y}, kCellWidth, kCellHeight,
                      {.fill = kUnused.fill, .stroke = "#d0d7de", .radius = 2});
    canvas_.text({kMargin + 304, y + 16}, "core that no rank has", {});
    canvas_.rectangle({kMargin + 440, y + 3}, 46, kChipHeight,
                      {.fill = "#ffffff", .stroke = "#57606a", .radius = 9});
    canvas_.text({kMargin + 463, y + 16.5}, "NIC", {.size = 10, .anchor = "middle"});
    if (topology_.core_kinds.empty()) return;
    const double second = y + kCellHeight + kGap;
    canvas_.rectangle({kMargin, second}, kCellWidth, kCellHeight,
                      {.fill = kUnused.fill, .stroke = "#d0d7de", .radius = 2});
    canvas_.rectangle({kMargin, second}, kKindBar, kCellHeight, {.fill = "#24292f", .radius = 1});
    std::vector<std::string> names;
    for (const CoreKind& kind : topology_.core_kinds) names.push_back(kind.name);
    canvas_.text({kMargin + 34, second + 16},
                 "core of a slower kind; the kind stands before its CPU: " + join(names, " or ") +
                     ", the fastest first",
                 {});
  }

  const Topology& topology_;
  NodeMap map_;
  SvgCanvas canvas_;
};

}  // namespace

std::string topology_svg(const Topology& topology, const BindingPlan& plan) {
  return Picture(topology, plan).draw();
}

}  // namespace ddl::affinity
