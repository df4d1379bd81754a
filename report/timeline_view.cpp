#include "report/timeline_view.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include <kainjow/mustache.hpp>

#include "report/section.h"
#include "timeline/gzip_file.h"
#include "timeline/json_text.h"

namespace ddl::report {
namespace {

using Event = Timeline::Event;
using timeline::JsonObject;

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock() adds a zero
  const int size =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

/// The source that a Content-Security-Policy names to admit this script.
std::string csp_source(std::string_view script) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  const int done = ::EVP_Digest(script.data(), script.size(), hash.data(), &size, ::EVP_sha256(), nullptr);
  DDL_CHECK(done == 1, "SHA-256");
  return "sha256-" + base64({reinterpret_cast<const char*>(hash.data()), size});
}

/// Rows of a track, each with events that do not overlap, by begin. Every event is in the first row that has room for
/// it, so nested events are below those that they are in. events: as those of Timeline::Track.
std::vector<std::vector<const Event*>> rows_of(const std::vector<Event>& events) {
  std::vector<std::vector<const Event*>> rows;
  using Busy = std::pair<std::int64_t, std::size_t>;  // until when, and which row
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
  for (const Event& event : events) {
    while (!busy.empty() && busy.top().first <= event.begin) {
      free.push(busy.top().second);
      busy.pop();
    }
    if (free.empty()) {
      free.push(rows.size());
      rows.emplace_back();
    }
    const std::size_t row = free.top();
    free.pop();
    rows[row].push_back(&event);
    busy.emplace(event.end(), row);
  }
  return rows;
}

/// Numbers as bytes of seven bits each, the lowest first; all but the last one have the eighth bit set.
class Column {
 public:
  void add(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7U) bytes_ += static_cast<char>(number | 0x80U);
    bytes_ += static_cast<char>(number);
  }
  void add(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
  /// The difference: small numbers of both signs are short.
  void add_difference(std::uint64_t number, std::uint64_t before) {
    const auto difference = static_cast<std::int64_t>(number - before);
    add(static_cast<std::uint64_t>(difference) << 1U ^ static_cast<std::uint64_t>(difference >> 63U));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// What report/timeline_data.js reads: the length of the head in four bytes, the lowest first; the head, which is JSON;
/// and the columns, which it has the sizes of. In each column the events follow each other by rank, track and row. Begins
/// are relative to the event before in the row, and so are the numbers of calls.
class Packer {
 public:
  explicit Packer(const Timeline& timeline) : timeline_(timeline) {}
  std::string pack();

 private:
  void add_track(const Timeline::Track& track);
  template <class Items, class Append>
  void add_list(JsonObject& object, std::string_view key, const Items& items, Append append);

  const Timeline& timeline_;
  std::string head_;
  Column begins_, durations_, titles_, details_, calls_, waits_;
};

template <class Items, class Append>
void Packer::add_list(JsonObject& object, std::string_view key, const Items& items, Append append) {
  object.begin_member(key);
  head_ += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) head_ += ',';
    append(item);
  }
  head_ += ']';
}

void Packer::add_track(const Timeline::Track& track) {
  const auto rows = rows_of(track.events);
  for (const auto& row : rows) {
    std::int64_t begin = 0;
    std::uint64_t call = 0;
    for (const Event* event : row) {
      begins_.add(event->begin - std::exchange(begin, event->begin));
      durations_.add(event->duration);
      titles_.add(std::uint64_t{event->title});
      details_.add(std::uint64_t{event->details});
      calls_.add_difference(event->call_number, std::exchange(call, event->call_number));
      if (track.is_of_tensors) waits_.add(event->waited);
    }
  }
  JsonObject object(head_);
  object.add("name", track.name).add("tensors", track.is_of_tensors);
  add_list(object, "rows", rows,
           [&](const auto& row) { timeline::append_number(head_, std::uint64_t{row.size()}); });
  object.close();
}

std::string Packer::pack() {
  JsonObject object(head_);
  object.add("version", timeline_.version);
  add_list(object, "ranks", timeline_.ranks, [&](const Timeline::Rank& rank) {
    JsonObject one(head_);
    one.add("name", rank.name).add("note", rank.note);
    add_list(one, "tracks", rank.tracks, [&](const Timeline::Track& track) { add_track(track); });
    one.close();
  });
  add_list(object, "titles", timeline_.titles, [&](const Timeline::Title& title) {
    JsonObject one(head_);
    one.add("name", title.name).add("category", title.category).add("moment", title.is_moment).close();
  });
  add_list(object, "details", timeline_.details, [&](const std::string& json) { head_ += json; });
  add_list(object, "notes", timeline_.notes,
           [&](const std::string& note) { timeline::append_quoted(head_, note); });
  const auto columns = {&begins_, &durations_, &titles_, &details_, &calls_, &waits_};
  add_list(object, "sizes", columns, [&](const Column* column) {
    timeline::append_number(head_, std::uint64_t{column->bytes().size()});
  });
  object.close();

  std::string all;
  std::size_t size = sizeof(std::uint32_t) + head_.size();
  for (const Column* column : columns) size += column->bytes().size();
  all.reserve(size);
  for (unsigned shift = 0; shift < 32; shift += 8) all += static_cast<char>(head_.size() >> shift);
  all += head_;
  for (const Column* column : columns) all += column->bytes();
  return all;
}

}  // namespace

Result<std::string> timeline_view(const Timeline& timeline, const std::string& title) {
  DDL_ASSIGN(packed, timeline::deflated(Packer(timeline).pack()));
  std::string script;
  for (const char* const name :
       {"timeline_data.js", "timeline_canvas.js", "timeline_view.js", "timeline_input.js"})
    script += page_file(name);
  kainjow::mustache::data values{kainjow::mustache::data::type::object};
  values.set("css", std::string(page_file("timeline_view.css")));
  values.set("script-source", csp_source(script));
  values.set("script", script);
  values.set("title", shown(title));
  values.set("data", base64(packed));
  kainjow::mustache::mustache frame{std::string(page_file("timeline_view.html.mustache"))};
  std::string page = frame.render(values);
  DDL_CHECK(frame.is_valid(), frame.error_message());
  return page;
}

}  // namespace ddl::report
