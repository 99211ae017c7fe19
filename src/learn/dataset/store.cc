#include "learn/dataset/store.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "learn/dataset/store_format.h"
#include "record/trace_code.h"

namespace tensorsmith::learn {

namespace {

using namespace store_format;  // NOLINT: gives access to the types of the layout

// A catalog consists of the texts of the workloads and six to eight numbers per group.
constexpr uint64_t kMaxCatalogBytes = uint64_t{256} << 20;

struct Group {
  GroupSizes sizes;
  uint64_t offset = 0;
  std::span<const Fixed> records;
  std::span<const Leaf> leaves;
  std::span<const double> seconds;
  std::span<const float> values;
  std::string_view traces;
  std::span<const float> disturbances;
  std::span<const uint32_t> point_ends;
  std::span<const int64_t> points;
};

class MappedStore : public Store {
 public:
  MappedStore(std::string path, const std::byte* data, uint64_t bytes)
      : path_(std::move(path)), data_(data), bytes_(bytes) {}
  ~MappedStore() override { munmap(const_cast<std::byte*>(data_), bytes_); }
  MappedStore(const MappedStore&) = delete;
  MappedStore& operator=(const MappedStore&) = delete;

  Status load() {
    std::memcpy(&header_, data_, sizeof(header_));
    if (std::memcmp(header_.magic, kMagic, sizeof(kMagic)) != 0)
      return corrupt("is not a store that Tensorsmith made");
    if (header_.version < 1 || header_.version > kStoreVersion)
      return Error{ErrorCode::kMismatch, path_,
                   "has store version " + std::to_string(header_.version) +
                       ", but this program reads versions up to " + std::to_string(kStoreVersion)};
    if (header_.schema != feature::kPerStoreVersion)
      return Error{ErrorCode::kMismatch, path_,
                   "contains features of schema version " + std::to_string(header_.schema) +
                       ", but this program uses version " + std::to_string(feature::kPerStoreVersion) +
                       "; import the records again"};
    if (header_.catalog_offset > bytes_ || header_.catalog_bytes > bytes_ - header_.catalog_offset)
      return corrupt("is cut off");
    hash_.assign(header_.hash, sizeof(header_.hash));
    if (header_.catalog_bytes > kMaxCatalogBytes) return corrupt("is damaged: its catalog is too large");
    const char* catalog = reinterpret_cast<const char*>(data_) + header_.catalog_offset;
    const auto json = parse_json<nlohmann::json>({catalog, header_.catalog_bytes});
    if (json.is_discarded()) return corrupt("has a damaged catalog");
    try {
      for (const auto& w : json.at("workloads"))
        workloads_.push_back({w.at("key"), w.at("name"), w.at("text"), w.at("flops"), w.at("foreign_keys")});
      devices_ = json.at("devices").get<std::vector<std::string>>();
      device_attributes_.resize(devices_.size());
      for (size_t d = 0; d < devices_.size(); ++d) {
        if (!json.contains("device_attributes") || !json["device_attributes"].contains(devices_[d])) continue;
        TS_ASSIGN_OR_RETURN(device_attributes_[d],
                            target::parse_device(json["device_attributes"][devices_[d]].dump(),
                                                 path_ + ", device " + devices_[d]));
      }
      for (const auto& g : json.at("groups")) TS_RETURN_IF_ERROR(load_group(g.get<std::vector<uint64_t>>()));
    } catch (const nlohmann::json::exception&) {
      return corrupt("has a damaged catalog");
    }
    return {};
  }

  int64_t size() const override { return size_; }
  const std::vector<StoredWorkload>& workloads() const override { return workloads_; }
  const std::vector<std::string>& devices() const override { return devices_; }
  const std::vector<std::optional<target::Device>>& device_attributes() const override {
    return device_attributes_;
  }
  const std::string& content_hash() const override { return hash_; }

  Status verify() const override {
    Hasher hasher;
    for (const Group& g : groups_) {
      for (const auto bytes : {std::as_bytes(g.records), std::as_bytes(g.leaves), std::as_bytes(g.seconds),
                               std::as_bytes(g.values), std::as_bytes(std::span(g.traces))})
        hasher.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      for (const auto bytes :
           {std::as_bytes(g.disturbances), std::as_bytes(g.point_ends), std::as_bytes(g.points)}) {
        if (!bytes.empty())
          hasher.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      }
    }
    hasher.add(std::string_view(reinterpret_cast<const char*>(data_) + header_.catalog_offset,
                                header_.catalog_bytes));
    if (hasher.hex128() != hash_)
      return corrupt("is damaged: its contents do not match the hash in its header");
    return {};
  }

  Entry entry(int64_t i) const override {
    const auto [g, r] = find(i);
    const Fixed& fixed = g->records[r];
    Entry out;
    out.workload = fixed.workload;
    out.device = fixed.device;
    out.error_no = fixed.error_no;
    out.mean_seconds = fixed.mean_seconds;
    const uint32_t first = r == 0 ? 0 : g->records[r - 1].seconds_end;
    out.seconds = g->seconds.subspan(first, fixed.seconds_end - first);
    out.unix_seconds = fixed.unix_seconds;
    out.program = fixed.program;
    out.leaves = fixed.leaves_end - first_leaf(*g, r);
    out.rows = fixed.rows;
    out.tree_nodes = fixed.tree_nodes;
    if (!g->disturbances.empty() && !std::isnan(g->disturbances[r])) out.disturbance = g->disturbances[r];
    return out;
  }

  void leaves(int64_t i, feature::LeafFeatures& out) const override {
    const auto [g, r] = find(i);
    const uint32_t first = first_leaf(*g, r), last = g->records[r].leaves_end;
    out.tree_nodes = g->records[r].tree_nodes;
    out.vectors.rows = last - first;
    out.vectors.values.resize(static_cast<size_t>(last - first) * feature::kPerStoreWidth);
    out.positions.clear();
    out.row_numbers.clear();
    float* values = out.vectors.values.data();
    for (uint32_t l = first; l < last; ++l, values += feature::kPerStoreWidth) {
      expand(*g, l, values);
      out.positions.push_back(g->leaves[l].position);
      out.row_numbers.push_back(g->leaves[l].row);
    }
  }

  feature::FeatureMatrix per_store(int64_t i) const override {
    const auto [g, r] = find(i);
    feature::FeatureMatrix out;
    out.rows = g->records[r].rows;
    out.values.resize(size_t{g->records[r].rows} * feature::kPerStoreWidth);
    for (uint32_t l = first_leaf(*g, r); l < g->records[r].leaves_end; ++l) {
      if (g->leaves[l].row >= 0)
        expand(*g, l, out.values.data() + g->leaves[l].row * feature::kPerStoreWidth);
    }
    return out;
  }

  Result<sched::Trace> trace(int64_t i) const override {
    const auto [g, r] = find(i);
    const uint32_t first = r == 0 ? 0 : g->records[r - 1].trace_end;
    return record::decode_trace(g->traces.substr(first, g->records[r].trace_end - first));
  }

  std::optional<record::DesignPoint> point(int64_t i) const override {
    const auto [g, r] = find(i);
    if (g->point_ends.empty()) return std::nullopt;
    const uint32_t first = r == 0 ? 0 : g->point_ends[r - 1], last = g->point_ends[r];
    if (first == last) return std::nullopt;
    record::DesignPoint out;
    out.sketch = static_cast<int>(g->points[first]);
    out.decisions.assign(g->points.begin() + first + 1, g->points.begin() + last);
    return out;
  }

 private:
  Error corrupt(const char* reason) const { return {ErrorCode::kCorrupt, path_, reason}; }

  template <class T>
  std::span<const T> section(uint64_t& at, uint64_t count) const {
    const std::span<const T> out(reinterpret_cast<const T*>(data_ + at), count);
    at += aligned(count * sizeof(T));
    return out;
  }

  Status load_group(const std::vector<uint64_t>& numbers) {
    if (numbers.size() < 6 || numbers.size() > 8) return corrupt("has a damaged catalog");
    Group g;
    g.offset = numbers[0];
    const auto optional = [&](size_t i) { return i < numbers.size() ? numbers[i] : 0; };
    g.sizes = {numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], optional(6), optional(7)};
    for (uint64_t n : numbers) {
      if (n > bytes_) return corrupt("is cut off");
    }
    if (g.offset % 8 != 0 || bytes_of(g.sizes) > bytes_ - g.offset) return corrupt("is cut off");
    // Groups must be in ascending order without overlap. A damaged catalog that named one group
    // many times could otherwise make loading take arbitrarily long.
    if (g.offset < end_of_groups_) return corrupt("is damaged: its groups of records overlap");
    end_of_groups_ = g.offset + bytes_of(g.sizes);
    uint64_t at = g.offset;
    g.records = section<Fixed>(at, g.sizes.records);
    g.leaves = section<Leaf>(at, g.sizes.leaves);
    g.seconds = section<double>(at, g.sizes.seconds);
    g.values = section<float>(at, g.sizes.values);
    const auto traces = section<char>(at, g.sizes.trace_bytes);
    g.traces = {traces.data(), traces.size()};
    g.disturbances = section<float>(at, g.sizes.disturbances);
    if (g.sizes.points > 0) {
      g.point_ends = section<uint32_t>(at, g.sizes.records);
      g.points = section<int64_t>(at, g.sizes.points);
    }
    TS_RETURN_IF_ERROR(check(g));
    groups_.push_back(g);
    size_ += g.sizes.records;
    ends_.push_back(size_);
    return {};
  }

  // Checks that every offset lies in its section and every number in its list.
  Status check(const Group& g) const {
    if (!g.disturbances.empty() && g.disturbances.size() != g.records.size())
      return corrupt("contains damaged records");
    for (const float share : g.disturbances)
      if (!std::isnan(share) && !(share >= 0 && share <= 1)) return corrupt("contains damaged records");
    for (uint32_t begin = 0; const uint32_t end : g.point_ends) {
      if (end < begin || end > g.points.size()) return corrupt("contains damaged records");
      if (end > begin && (g.points[begin] < 0 || g.points[begin] > INT32_MAX))
        return corrupt("contains damaged records");
      begin = end;
    }
    Fixed last;
    for (const Fixed& r : g.records) {
      if (r.seconds_end < last.seconds_end || r.leaves_end < last.leaves_end ||
          r.trace_end < last.trace_end || r.seconds_end > g.sizes.seconds || r.leaves_end > g.sizes.leaves ||
          r.trace_end > g.sizes.trace_bytes || r.workload >= workloads_.size() || r.device >= devices_.size())
        return corrupt("contains damaged records");
      for (uint32_t l = last.leaves_end; l < r.leaves_end; ++l) {
        const uint32_t first = l == 0 ? 0 : g.leaves[l - 1].values_end;
        int count = 0;
        for (uint64_t word : g.leaves[l].mask) count += std::popcount(word);
        if (g.leaves[l].values_end < first || g.leaves[l].values_end > g.sizes.values ||
            g.leaves[l].values_end - first != static_cast<uint32_t>(count) ||
            g.leaves[l].mask.back() >> (feature::kPerStoreWidth % 64) != 0 ||
            g.leaves[l].row >= static_cast<int64_t>(r.rows))
          return corrupt("contains damaged feature vectors");
      }
      if (r.rows > r.leaves_end - last.leaves_end) return corrupt("contains damaged records");
      last = r;
    }
    return {};
  }

  std::pair<const Group*, size_t> find(int64_t i) const {
    TS_CHECK(i >= 0 && i < size_, "record number out of range");
    const size_t at = std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin();
    return {&groups_[at], static_cast<size_t>(i - (at == 0 ? 0 : ends_[at - 1]))};
  }

  static uint32_t first_leaf(const Group& g, size_t r) { return r == 0 ? 0 : g.records[r - 1].leaves_end; }

  static void expand(const Group& g, uint32_t l, float* out) {
    std::fill_n(out, feature::kPerStoreWidth, 0.0F);
    const float* value = g.values.data() + (l == 0 ? 0 : g.leaves[l - 1].values_end);
    for (size_t w = 0; w < g.leaves[l].mask.size(); ++w) {
      for (uint64_t word = g.leaves[l].mask[w]; word != 0; word &= word - 1)
        out[w * 64 + std::countr_zero(word)] = *value++;
    }
  }

  std::string path_;
  const std::byte* data_;
  uint64_t bytes_;
  Header header_;
  std::string hash_;
  std::vector<StoredWorkload> workloads_;
  std::vector<std::string> devices_;
  std::vector<std::optional<target::Device>> device_attributes_;
  std::vector<Group> groups_;
  std::vector<int64_t> ends_;  // by group: number of records up to its end
  int64_t size_ = 0;
  uint64_t end_of_groups_ = 0;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const FileDescriptor file, open_input(path));
  TS_ASSIGN_OR_RETURN(const int64_t bytes, input_bytes(file, path));
  if (bytes < int64_t{sizeof(Header)})
    return Error{ErrorCode::kCorrupt, path, "is not a store that Tensorsmith made"};
  void* address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED)
    return Error{ErrorCode::kIo, path, std::string("cannot be read: ") + std::strerror(errno)};
  auto store = std::make_unique<MappedStore>(path, static_cast<const std::byte*>(address), bytes);
  TS_RETURN_IF_ERROR(store->load());
  return std::unique_ptr<Store>(std::move(store));
}

bool is_store_file(const std::string& path) {
  char begin[sizeof(kMagic)] = {};
  const auto file = open_input(path);
  return file.ok() && read_exactly(*file, path, 0, begin, sizeof(begin)).ok() &&
         std::memcmp(begin, kMagic, sizeof(kMagic)) == 0;
}

}  // namespace tensorsmith::learn
