// The picture: well-formed, with all of its elements.
#include "examples/function_approximation/plot.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "examples/function_approximation/picture.h"
#include "examples/xml.h"
#include "support/catch.h"

using namespace fit;
using ddl::test::parse_xml;
using ddl::test::XmlElement;

namespace {

std::vector<XmlElement> all(const std::vector<XmlElement>& elements, const std::string& name) {
  std::vector<XmlElement> found;
  std::copy_if(elements.begin(), elements.end(), std::back_inserter(found),
               [&](const XmlElement& element) { return element.name == name; });
  return found;
}

std::vector<std::string> texts(const std::vector<XmlElement>& elements, const std::string& css_class = "") {
  std::vector<std::string> found;
  for (const XmlElement& element : all(elements, "text")) {
    const auto it = element.attributes.find("class");
    if ((it == element.attributes.end() ? "" : it->second) == css_class) found.push_back(element.text);
  }
  return found;
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::vector<std::pair<double, double>> vertices(const XmlElement& polyline) {
  std::istringstream in(polyline.attributes.at("points"));
  std::vector<std::pair<double, double>> result;
  double x = 0, y = 0;
  char comma = 0;
  while (in >> x >> comma >> y) result.emplace_back(x, y);
  return result;
}

Plot small_plot() {
  Plot plot;
  plot.title = "a < b & \"c\"";
  plot.x_min = -1;
  plot.x_max = 1;
  plot.y_min = -2.2;
  plot.y_max = 2.6;
  plot.curves.push_back(
      {Eigen::RowVector3d(-1, 0, 1), Eigen::RowVector3d(-2.2, 0, 2.6), "#123456", 2.0, false});
  return plot;
}

std::vector<Part> parts_of(Eigen::Index points, int size) {
  std::vector<Part> parts;
  for (int rank = 0; rank < size; ++rank) parts.push_back(part_of_rank(points, rank, size));
  return parts;
}

}  // namespace

TEST_CASE("the XML parser of these tests rejects text that is not well-formed") {
  CHECK(parse_xml("<a b=\"1\"><c/>x &amp; y</a>\n").size() == 2);
  for (const char* const bad : {"", "<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>",
                                "<a>&nbsp;</a>", "<a b=\"<\"/>", "<a><b></a></b>", "text"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_xml(bad), std::runtime_error);
  }
}

TEST_CASE("text is escaped") {
  const auto elements = parse_xml(to_svg(small_plot()));
  CHECK(elements.front().name == "svg");
  CHECK(all(elements, "title").at(0).text == "a < b & \"c\"");
}

TEST_CASE("curves go from corner to corner, y upwards") {
  const auto line = vertices(all(parse_xml(to_svg(small_plot())), "polyline").at(0));
  REQUIRE(line.size() == 3);
  CHECK(line[0].first < line[1].first);
  CHECK(line[1].first == Approx((line[0].first + line[2].first) / 2).margin(0.01));
  CHECK(line[0].second > line[2].second);
}

TEST_CASE("ticks are round numbers within the range") {
  const auto ticks = texts(parse_xml(to_svg(small_plot())), "tick");
  const std::vector<std::string> expected = {"−2",   "−1",   "0",   "1",   "2",   "−1.0", "−0.8", "−0.6",
                                             "−0.4", "−0.2", "0.0", "0.2", "0.4", "0.6",  "0.8",  "1.0"};
  CHECK(ticks == expected);

  Plot tiny = small_plot();
  tiny.y_min = 0;
  tiny.y_max = 0.003;
  CHECK(contains(texts(parse_xml(to_svg(tiny)), "tick"), "0.0005"));
  tiny.y_max = 70000;
  CHECK(contains(texts(parse_xml(to_svg(tiny)), "tick"), "20000"));
}

TEST_CASE("dots outside of the range are omitted, those on its border are drawn") {
  Plot plot = small_plot();
  plot.dots.push_back({Eigen::RowVector4d(-1, 1, 1.01, 0), Eigen::RowVector4d(0, 2.6, 0, 3), "#abcdef"});
  CHECK(all(parse_xml(to_svg(plot)), "circle").size() == 2);
}

TEST_CASE("a label that is wider than its band is omitted") {
  Plot plot = small_plot();
  plot.bands.push_back({-1, 0, "#111111", "wide"});
  plot.bands.push_back({0, 0.01, "#222222", "narrow"});
  const auto elements = parse_xml(to_svg(plot));
  CHECK(contains(texts(elements), "wide"));
  CHECK_FALSE(contains(texts(elements), "narrow"));
}

TEST_CASE("the picture of a common fit shows target, fit, and every rank's points in its colour") {
  const Eigen::RowVectorXd grid = even_grid(101);
  const Eigen::MatrixXd fits = target(grid).transpose();
  for (const int size : {1, 2, 3, 8}) {
    INFO(size << " ranks");
    const Plot plot = fit_picture(parts_of(61, size), grid, fits, "title", "subtitle");
    CHECK(plot.curves.size() == 2);
    REQUIRE(plot.dots.size() == static_cast<std::size_t>(size));
    Eigen::Index dots = 0;
    for (std::size_t rank = 0; rank < plot.dots.size(); ++rank) {
      dots += plot.dots[rank].x.size();
      CHECK(plot.bands[rank].colour == plot.dots[rank].colour);
      for (std::size_t other = 0; other < rank; ++other)
        CHECK(plot.dots[other].colour != plot.dots[rank].colour);
    }
    CHECK(dots == 61);

    const auto elements = parse_xml(to_svg(plot));
    CHECK(all(elements, "polyline").size() == 2);
    CHECK(all(elements, "circle").size() == static_cast<std::size_t>(61 + size));  // with those of the legend
    const auto labels = texts(elements);
    for (const char* const label : {"title", "subtitle", "x", "y", "target", "fit", "rank 0"}) {
      CHECK(contains(labels, label));
    }
  }
}

TEST_CASE("the picture of an ensemble shows each fit: solid in its part, dashed outside") {
  const Eigen::RowVectorXd grid = even_grid(101);
  Eigen::MatrixXd fits(101, 3);
  for (int rank = 0; rank < 3; ++rank) fits.col(rank).setConstant(0.1 * rank);
  const std::vector<Part> parts = parts_of(60, 3);
  const Plot plot = fit_picture(parts, grid, fits, "title", "subtitle");
  int solid = 0, dashed = 0;
  for (std::size_t i = 1; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    const auto rank = static_cast<std::size_t>(std::lround(curve.y[0] / 0.1));
    CHECK(curve.colour == plot.bands[rank].colour);
    const bool inside = curve.x.minCoeff() >= parts[rank].begin && curve.x.maxCoeff() <= parts[rank].end;
    CHECK(inside != curve.dashed);
    ++(curve.dashed ? dashed : solid);
  }
  CHECK(solid == 3);
  CHECK(dashed == 4);  // the middle rank has two outsides
  CHECK_NOTHROW(parse_xml(to_svg(plot)));
}

TEST_CASE("pictures of many ranks stay well-formed") {
  const Eigen::RowVectorXd grid = even_grid(51);
  const Plot plot = fit_picture(parts_of(300, 100), grid, target(grid).transpose(), "title", "subtitle");
  CHECK(all(parse_xml(to_svg(plot)), "circle").size() >= 300);
}

TEST_CASE("a picture that cannot be written is an error that names the file") {
  const std::string path = "/nonexistent-directory/fit.svg";
  CHECK_THROWS_WITH(write_file(path, "<svg/>"), Catch::Contains(path));
}
