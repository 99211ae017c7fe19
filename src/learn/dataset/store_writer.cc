#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/hash.h"
#include "base/json_text.h"
#include "learn/dataset/store.h"
#include "learn/dataset/store_format.h"
#include "record/jsonl.h"
#include "record/trace_code.h"

namespace tensorsmith::learn {

namespace {

using namespace store_format;  // NOLINT: gives access to the types of the layout

class Writer : public StoreWriter {
 public:
  Writer(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  ~Writer() override {
    if (fd_ >= 0) close(fd_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Status start() {
    const Header header;
    return write(&header, sizeof(header));
  }

  uint32_t add_workload(const StoredWorkload& workload) override {
    const auto [it, added] = workload_numbers_.emplace(workload.key, workloads_.size());
    if (added) {
      workloads_.push_back(workload);
    } else {
      auto& keys = workloads_[it->second].foreign_keys;
      for (const std::string& key : workload.foreign_keys) {
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
      }
    }
    return it->second;
  }

  uint32_t add_device(const std::string& name, const std::optional<target::Device>& attributes) override {
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d] == name) return d;
    }
    devices_.push_back(name);
    if (attributes) device_attributes_[name] = parse_json<nlohmann::json>(target::to_json(*attributes));
    return devices_.size() - 1;
  }

  Status add(const StoreRecord& record) override {
    TS_CHECK(record.workload < workloads_.size() && record.device < devices_.size(),
             "workload or device not added");
    const feature::LeafFeatures& leaves = record.leaves;
    Fixed fixed;
    fixed.mean_seconds = record.mean_seconds;
    fixed.unix_seconds = record.unix_seconds;
    fixed.workload = record.workload;
    fixed.device = record.device;
    fixed.error_no = record.error_no;
    fixed.tree_nodes = leaves.tree_nodes;
    const size_t trace_begin = trace_.size();
    record::encode_trace(record.trace, trace_);
    fixed.program = Hasher()
                        .add(workloads_[record.workload].key)
                        .add(std::string_view(trace_).substr(trace_begin))
                        .digest64();
    seconds_.insert(seconds_.end(), record.seconds.begin(), record.seconds.end());
    for (int l = 0; l < leaves.vectors.rows; ++l) {
      Leaf leaf;
      const auto vector = leaves.vectors.row(l);
      for (size_t c = 0; c < vector.size(); ++c) {
        if (vector[c] == 0) continue;
        leaf.mask[c / 64] |= uint64_t{1} << (c % 64);
        values_.push_back(vector[c]);
      }
      const int position = leaves.positions[l];
      if (position > UINT16_MAX || leaves.vectors.rows > INT16_MAX)
        return Error{ErrorCode::kUnsupported, path_, "a program has too many statements for this format"};
      leaf.values_end = values_.size();
      leaf.position = position;
      leaf.row = leaves.row_numbers[l];
      fixed.rows += leaf.row >= 0 ? 1 : 0;
      leaves_.push_back(leaf);
    }
    fixed.seconds_end = seconds_.size();
    fixed.leaves_end = leaves_.size();
    fixed.trace_end = trace_.size();
    records_.push_back(fixed);
    disturbances_.push_back(static_cast<float>(record.disturbance.value_or(NAN)));
    if (record.point) {
      points_.push_back(record.point->sketch);
      points_.insert(points_.end(), record.point->decisions.begin(), record.point->decisions.end());
    }
    point_ends_.push_back(points_.size());
    return records_.size() == kGroupRecords ? flush() : Status();
  }

  Status finish() override {
    TS_RETURN_IF_ERROR(flush());
    nlohmann::json workloads = nlohmann::json::array();
    for (const StoredWorkload& w : workloads_)
      workloads.push_back({{"key", w.key},
                           {"name", w.name},
                           {"text", w.text},
                           {"flops", w.flops},
                           {"foreign_keys", w.foreign_keys}});
    nlohmann::json root{{"workloads", workloads}, {"devices", devices_}, {"groups", groups_}};
    if (!device_attributes_.empty()) root["device_attributes"] = device_attributes_;
    const std::string catalog = root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    Header header;
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.version = has_points_ ? kStoreVersion : has_disturbances_ ? 2 : 1;
    header.schema = feature::kPerStoreVersion;
    header.catalog_offset = offset_;
    header.catalog_bytes = catalog.size();
    TS_RETURN_IF_ERROR(section(catalog.data(), catalog.size()));
    std::memcpy(header.hash, hash_.hex128().data(), sizeof(header.hash));
    if (pwrite(fd_, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) || fsync(fd_) != 0)
      return io_error("writing");
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0) return io_error("writing");
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("renaming");
    temporary_.clear();
    return {};
  }

 private:
  Error io_error(const char* action) const {
    const int code = errno;
    return {ErrorCode::kIo, path_,
            std::string(action) + " failed: " + std::strerror(code) + "; the store is as it was before"};
  }

  Status write(const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t count = ::write(fd_, at, bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return io_error("writing");
      at += count;
      bytes -= count;
      offset_ += count;
    }
    return {};
  }
  // Writes a section, adds it to the hash and pads it to a multiple of 8 bytes.
  Status section(const void* data, size_t bytes) {
    hash_.add(std::string_view(static_cast<const char*>(data), bytes));
    TS_RETURN_IF_ERROR(write(data, bytes));
    static constexpr char kZeros[8] = {};
    return write(kZeros, aligned(bytes) - bytes);
  }

  Status flush() {
    if (records_.empty()) return {};
    const bool known = std::any_of(disturbances_.begin(), disturbances_.end(),
                                   [](float share) { return !std::isnan(share); });
    auto& group = groups_.emplace_back(std::vector<uint64_t>{offset_, records_.size(), leaves_.size(),
                                                             seconds_.size(), values_.size(), trace_.size()});
    const bool has_points = !points_.empty();
    if (known || has_points) group.push_back(known ? disturbances_.size() : 0);
    if (has_points) group.push_back(points_.size());
    has_disturbances_ = has_disturbances_ || known;
    has_points_ = has_points_ || has_points;
    TS_RETURN_IF_ERROR(section(records_.data(), records_.size() * sizeof(Fixed)));
    TS_RETURN_IF_ERROR(section(leaves_.data(), leaves_.size() * sizeof(Leaf)));
    TS_RETURN_IF_ERROR(section(seconds_.data(), seconds_.size() * sizeof(double)));
    TS_RETURN_IF_ERROR(section(values_.data(), values_.size() * sizeof(float)));
    TS_RETURN_IF_ERROR(section(trace_.data(), trace_.size()));
    if (known) TS_RETURN_IF_ERROR(section(disturbances_.data(), disturbances_.size() * sizeof(float)));
    if (has_points) {
      TS_RETURN_IF_ERROR(section(point_ends_.data(), point_ends_.size() * sizeof(uint32_t)));
      TS_RETURN_IF_ERROR(section(points_.data(), points_.size() * sizeof(int64_t)));
    }
    records_.clear();
    leaves_.clear();
    seconds_.clear();
    values_.clear();
    trace_.clear();
    disturbances_.clear();
    point_ends_.clear();
    points_.clear();
    return {};
  }

  std::string path_, temporary_;
  int fd_;
  uint64_t offset_ = 0;
  Hasher hash_;
  std::vector<StoredWorkload> workloads_;
  std::unordered_map<std::string, uint32_t> workload_numbers_;
  std::vector<std::string> devices_;
  nlohmann::json device_attributes_ = nlohmann::json::object();  // name -> contents of its device file
  std::vector<std::vector<uint64_t>> groups_;                    // offset, then the fields of GroupSizes
  bool has_disturbances_ = false, has_points_ = false;           // any group
  // The group that is being filled.
  std::vector<Fixed> records_;
  std::vector<Leaf> leaves_;
  std::vector<double> seconds_;
  std::vector<float> values_;
  std::string trace_;
  std::vector<float> disturbances_;
  std::vector<uint32_t> point_ends_;
  std::vector<int64_t> points_;
};

}  // namespace

Result<std::unique_ptr<StoreWriter>> StoreWriter::create(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const record::FileBeside beside, record::create_file_beside(path));
  auto writer = std::make_unique<Writer>(beside.path, beside.temporary, beside.descriptor);
  TS_RETURN_IF_ERROR(writer->start());
  return std::unique_ptr<StoreWriter>(std::move(writer));
}

}  // namespace tensorsmith::learn
