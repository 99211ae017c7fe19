/* Hopper's warpgroups, barriers in shared memory and copies of boxes, according to the PTX ISA. Only
   kernels that use them contain this text. The products themselves (ts_wgmma_TYPE_COLUMNS_AB) are
   generated for each kernel. */
#define TS_WGMMA(type, columns, a, b) ts_wgmma_##type##_##columns##_##a##b
/* Returns the matrix descriptor of a tile in shared memory; `layout` is the descriptor without the
   address. */
TS_INLINE uint64_t ts_descriptor(const void* tile, int offset, uint64_t layout) {
  return layout | ((ts_shared(tile) + offset) & 0x3ffff) >> 4;
}
/* Makes this thread's writes to shared memory visible to products and copies of boxes, which use the
   async proxy. */
TS_INLINE void ts_fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TS_INLINE void ts_begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TS_INLINE void ts_end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Waits until at most `groups` groups of products are pending. */
#define TS_WAIT_FOR_PRODUCTS(groups) asm volatile("wgmma.wait_group.sync.aligned " #groups ";" ::: "memory")
/* Keeps the compiler from moving uses of the sums across this point. */
TS_INLINE void ts_hold(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
TS_INLINE void ts_hold(int& sum) { asm volatile("" : "+r"(sum)::"memory"); }
template <class T, int n>
TS_INLINE void ts_hold_sums(T (&sums)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) ts_hold(sums[i]);
}

typedef struct __attribute__((aligned(64))) {
  unsigned char bytes[128];
} ts_tensor_map;
#define TS_MAP const __grid_constant__ ts_tensor_map
TS_INLINE void ts_make_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ts_shared(barrier)), "r"(arrivals) : "memory");
}
TS_INLINE void ts_publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  ts_fence_async();
}
TS_INLINE void ts_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ts_shared(barrier)) : "memory");
}
/* Arrives at the barrier, whose phase then ends only after `bytes` bytes have been copied. */
TS_INLINE void ts_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ts_shared(barrier)), "r"(bytes)
               : "memory");
}
/* Waits until the phase with this parity has ended. */
TS_INLINE void ts_wait_for(uint64_t* barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(ts_shared(barrier)), "r"(parity)
        : "memory");
  } while (!done);
}
#define TS_UNPACK(...) __VA_ARGS__
#define TS_COPY_BOX(name, dimensions, how, mask, parameters, at, ...)                                \
  TS_INLINE void name(void* to, const ts_tensor_map& map, uint64_t* barrier, TS_UNPACK parameters) { \
    asm volatile("{\n.reg .b16 both;\nmov.b16 both, 3;\ncp.async.bulk.tensor." dimensions            \
                 ".shared::cluster.global.mbarrier::complete_tx::bytes" how " [%0], [%1, {" at       \
                 "}], [%2]" mask ";\n}" ::"r"(ts_shared(to)),                                        \
                 "l"(&map), "r"(ts_shared(barrier)), __VA_ARGS__                                     \
                 : "memory");                                                                        \
  }
#define TS_COPY_BOXES(name, how, mask)                                                                       \
  TS_COPY_BOX(name, "1d", how, mask, (int x), "%3", "r"(x))                                                  \
  TS_COPY_BOX(name, "2d", how, mask, (int x, int y), "%3, %4", "r"(x), "r"(y))                               \
  TS_COPY_BOX(name, "3d", how, mask, (int x, int y, int z), "%3, %4, %5", "r"(x), "r"(y), "r"(z))            \
  TS_COPY_BOX(name, "4d", how, mask, (int x, int y, int z, int u), "%3, %4, %5, %6", "r"(x), "r"(y), "r"(z), \
              "r"(u))                                                                                        \
  TS_COPY_BOX(name, "5d", how, mask, (int x, int y, int z, int u, int v), "%3, %4, %5, %6, %7", "r"(x),      \
              "r"(y), "r"(z), "r"(u), "r"(v))
TS_COPY_BOXES(ts_copy_box, "", "")
/* Copies to the same place in both blocks of a cluster; the barrier at the same place in each block
   counts the bytes. */
TS_COPY_BOXES(ts_copy_box_for_cluster, ".multicast::cluster", ", both")
/* Arrives without cluster scope, for which the compiler would wait for all memory operations of the thread
   (MEMBAR.ALL.GPU): the data that the barrier guards was read by products, which have finished. */
TS_INLINE void ts_arrive_at(uint64_t* barrier, int block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(ts_shared(barrier)),
      "r"(block)
      : "memory");
}
TS_INLINE void ts_meet_in_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
/* A warpgroup releases registers for the others of its block, or takes released ones; each thread then
   has n registers. */
#define TS_KEEP_REGISTERS(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 " #n ";")
#define TS_TAKE_REGISTERS(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 " #n ";")
