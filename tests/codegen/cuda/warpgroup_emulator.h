/* Hopper's instructions of warpgroups, of barriers in shared memory and of copies of boxes, on the host; a part of
   emulator.h. Written down after the PTX ISA, sections "Asynchronous Warpgroup Level Matrix Instructions" (layouts in
   shared memory, descriptors, fragments), "mbarrier" and "Tensors" (boxes, swizzles): what the emitter thinks of all this
   stands in none of it. Products and copies take place at once, or as late as they may. */

/* --- who wrote what, for the proxy fence */

/* By 16 bytes of shared memory, of one block after the other: the thread whose write the asynchronous proxy does not see yet, or -1. */
static const long kGranules = sizeof shared_memory[0] / 16;
static std::vector<int> written_by(kMostBlocks* kGranules, -1);
static int own_index() {
  for (size_t t = 0; t < fibers.size(); ++t)
    if (fibers[t].get() == self) return (int)t;
  return -1;
}
static void note_write(const char* to, int bytes) {
  const long begin = to - launch_shared;
  if (begin < 0 || begin >= (long)sizeof launch_shared) return;
  for (long at = begin / 16; at <= (begin + bytes - 1) / 16; ++at)
    written_by[self->rank * kGranules + at] = own_index();
}
static void ts_fence_async() {
  const int own = own_index();
  for (int& thread : written_by)
    if (thread == own) thread = -1;
}

/* --- wgmma */

static uint64_t ts_descriptor(const void* tile, int offset, uint64_t layout) {
  return layout | ((ts_shared(tile) + offset) & 0x3ffff) >> 4;
}
/* The address of an element of 128 / kBits ... of a matrix with `across` rows (or columns) in the direction that is no
   reduction: a canonical layout, Swizzle<kind, 4, 3> of it. */
static unsigned address_of(uint64_t descriptor, bool mn_major, int element_bytes, int across, int step) {
  const unsigned start = (unsigned)(descriptor & 0x3fff) << 4;
  const unsigned leading = (unsigned)(descriptor >> 16 & 0x3fff) << 4;
  const unsigned stride = (unsigned)(descriptor >> 32 & 0x3fff) << 4;
  const int base_offset = (int)(descriptor >> 49 & 7), mode = (int)(descriptor >> 62);
  if (base_offset != 0 || mode == 0) ++broken_rules; /* none that is used here */
  const int bits = mode == 1 ? 3 : mode == 2 ? 2 : 1, line = 16 << bits;
  const int in_line = line / element_bytes;
  unsigned at;
  if (mn_major) {
    /* ((T, 2^bits, m), (8, k)) : ((1, T, LBO), (2^bits T, SBO)) */
    at = across % in_line * element_bytes + across / in_line * leading + step % 8 * line + step / 8 * stride;
  } else {
    /* ((8, m), (T, 2k)) : ((2^bits T, SBO), (1, T)) */
    at = across % 8 * line + across / 8 * stride + step * element_bytes;
  }
  at += start;
  return at ^ (at >> 7 & ((1u << bits) - 1)) << 4;
}
template <class Of>
static auto shared_element(unsigned at, int bytes, Of of) {
  if (at + bytes > sizeof launch_shared) {
    ++broken_rules;
    return of(0u);
  }
  if (written_by[self->rank * kGranules + at / 16] >= 0)
    ++broken_rules; /* no fence between a thread's write and this */
  unsigned value = 0;
  memcpy(&value, launch_shared + at, bytes);
  return of(value);
}
/* D of m64nN: a lane's sums are those of rows 16 (warp % 4) + lane / 4 and 8 further, of two columns of every eight. */
template <int kColumns, class Sum, class A, class B>
static void multiply_warpgroup(Sum* c, uint64_t a, uint64_t b, bool a_mn, bool b_mn, int bytes, A of_a,
                               B of_b) {
  const int steps = 32 / bytes, lane = self->lane, warp = self->warp % 4;
  for (int i = 0; i < kColumns / 2; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    Sum sum = c[i];
    for (int k = 0; k < steps; ++k)
      sum += (Sum)shared_element(address_of(a, a_mn, bytes, row, k), bytes, of_a) *
             (Sum)shared_element(address_of(b, b_mn, bytes, column, k), bytes, of_b);
    c[i] = sum;
  }
}
template <int kColumns, class Sum, class A, class B>
static void multiply_later(Sum* c, uint64_t a, uint64_t b, bool a_mn, bool b_mn, int bytes, A of_a, B of_b) {
  if (!self->began_products) ++broken_rules;
  if (bytes != 2 && (a_mn || b_mn)) ++broken_rules;
  const auto work = [=] { multiply_warpgroup<kColumns>(c, a, b, a_mn, b_mn, bytes, of_a, of_b); };
  if (copies_are_early) work();
  self->products.back().push_back(copies_are_early ? std::function<void()>([] {}) : work);
}
#define TS_WGMMA(type, columns, a_mn, b_mn) \
  [&](auto* c, uint64_t a, uint64_t b) { wgmma_##type<columns>(c, a, b, a_mn, b_mn); }
#define WGMMA(name, sum, bytes, a_of, b_of)                                        \
  template <int kColumns>                                                          \
  static void wgmma_##name(sum* c, uint64_t a, uint64_t b, bool a_mn, bool b_mn) { \
    multiply_later<kColumns>(c, a, b, a_mn, b_mn, bytes, a_of, b_of);              \
  }
WGMMA(f16, float, 2, f16_of, f16_of)
WGMMA(bf16, float, 2, bf16_of, bf16_of)
WGMMA(s8_s8, int, 1, s8_of, s8_of)
WGMMA(s8_u8, int, 1, s8_of, u8_of)
WGMMA(u8_s8, int, 1, u8_of, s8_of)
WGMMA(u8_u8, int, 1, u8_of, u8_of)
static void ts_begin_products() { self->began_products = true; }
static void ts_end_products() {
  self->products.emplace_back();
  self->began_products = false;
}
static void TS_WAIT_FOR_PRODUCTS(size_t most) {
  auto& groups = self->products;
  while (groups.size() > 1 + most) {
    for (const auto& work : groups.front()) work();
    groups.erase(groups.begin());
  }
}
template <class T>
static void ts_hold_sums(T&) {}
#define TS_KEEP_REGISTERS(n)
#define TS_TAKE_REGISTERS(n)

/* --- barriers in shared memory */

struct Barrier {
  int arrivals = 0, pending = 0;  // expected in each phase, and missing in this one
  long bytes = 0;                 // bytes that have not arrived yet
  unsigned phase = 0;
  bool published = false;
  std::vector<std::function<void()>> copies;  // copies that have not been made yet
};
static std::map<const void*, Barrier> barriers;
static Barrier& barrier_at(const void* place) {
  const auto it = barriers.find(place);
  if (it != barriers.end()) return it->second;
  ++broken_rules; /* nobody has made it */
  return barriers[place];
}
static void end_phase(Barrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  b.pending = b.arrivals;
  b.phase ^= 1;
  ++progress;
}
static void ts_make_barrier(uint64_t* place, int arrivals) {
  if (ts_shared(place) % 8 != 0 || barriers.count(place)) ++broken_rules;
  barriers[place] = {arrivals, arrivals};
}
static void ts_publish_barriers() {
  for (auto& [place, b] : barriers) b.published = true;
}
static void ts_arrive(uint64_t* place) {
  Barrier& b = barrier_at(place);
  if (--b.pending < 0) ++broken_rules;
  ++progress;
  end_phase(b);
}
static void ts_expect(uint64_t* place, int bytes) {
  barrier_at(place).bytes += bytes;
  ts_arrive(place);
}
static void ts_wait_for(uint64_t* place, unsigned parity) {
  Barrier& b = barrier_at(place);
  if (!b.published) ++broken_rules;
  /* The phase of this parity has ended if the one that runs has the other. */
  while (b.phase == (parity & 1)) {
    auto copies = std::move(b.copies);
    b.copies.clear();
    for (const auto& copy : copies) copy();
    if (b.phase == (parity & 1)) yield();
  }
}

/* --- boxes */

struct ts_tensor_map {
  const char* begin;
  int dimensions, element_bytes, swizzle_bytes;
  long extents[5], strides[5], box[5]; /* elements, bytes, elements; innermost first */
};
#define TS_MAP const ts_tensor_map
/* block: the shared memory, `to`: a place in it. */
static void copy_box(char* block, unsigned to, const ts_tensor_map& map, Barrier& barrier,
                     const std::vector<int>& at) {
  const int bits = map.swizzle_bytes == 128 ? 3 : map.swizzle_bytes == 64 ? 2 : 1;
  long elements = 1;
  for (int d = 0; d < map.dimensions; ++d) elements *= map.box[d];
  for (long e = 0; e < elements; ++e) {
    const char* from = map.begin;
    bool inside = true;
    long rest = e;
    for (int d = 0; d < map.dimensions; ++d) {
      const long index = at[d] + rest % map.box[d];
      rest /= map.box[d];
      inside = inside && index >= 0 && index < map.extents[d];
      from += index * (d == 0 ? map.element_bytes : map.strides[d]);
    }
    /* Lines of the box lie one after the other; the swizzle is one of addresses. */
    unsigned place = to + (unsigned)(e * map.element_bytes);
    place ^= (place >> 7 & ((1u << bits) - 1)) << 4;
    if (inside)
      memcpy(block + place, from, map.element_bytes);
    else
      memset(block + place, 0, map.element_bytes);
  }
  barrier.bytes -= elements * map.element_bytes;
  end_phase(barrier);
}
static void copy_boxes(unsigned blocks, void* to, const ts_tensor_map& map, uint64_t* barrier,
                       std::vector<int> at) {
  if (at.size() != (size_t)map.dimensions || ts_shared(to) % 128 != 0) ++broken_rules;
  if (map.box[0] * map.element_bytes > map.swizzle_bytes) ++broken_rules;
  ++progress;
  const unsigned place = ts_shared(to), barrier_place = ts_shared(barrier);
  for (int rank = 0; rank < kMostBlocks; ++rank) {
    if ((blocks >> rank & 1) == 0) continue;
    Barrier& own = barrier_at(shared_memory[rank] + barrier_place);
    const auto copy = [=, &map, &own] { copy_box(shared_memory[rank], place, map, own, at); };
    if (copies_are_early)
      copy();
    else
      own.copies.push_back(copy);
  }
}
template <class... At>
static void ts_copy_box(void* to, const ts_tensor_map& map, uint64_t* barrier, At... at) {
  copy_boxes(1u << self->rank, to, map, barrier, {at...});
}
template <class... At>
static void ts_copy_box_for_cluster(void* to, const ts_tensor_map& map, uint64_t* barrier, At... at) {
  copy_boxes(3, to, map, barrier, {at...});
}
static void ts_arrive_at(uint64_t* barrier, int block) {
  ts_arrive((uint64_t*)(shared_memory[block] + ts_shared(barrier)));
}
