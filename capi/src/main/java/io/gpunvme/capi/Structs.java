package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.models.LayerSize;
import io.gpunvme.models.StreamPlan;
import io.gpunvme.models.TensorSlice;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.storage.GpuStorage;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The structures of {@code gpunvme.h}, by hand; a test compares them with the header. */
final class Structs {
  /** GPUNVME_WRITE. */
  static final int WRITE = 1;

  /** {@code gpunvme_info}. */
  static final long INFO = 32;

  static final long INFO_SIZE = 0;
  static final long INFO_GPU_BYTES = 8;
  static final long INFO_ALIGNMENT = 16;
  static final long INFO_BLOCK_BYTES = 20;
  static final long INFO_GPU = 24;
  static final long INFO_DEVICE = 28;

  /** {@code gpunvme_range}. */
  static final long RANGE = 24;

  static final long RANGE_OFFSET = 0;
  static final long RANGE_ADDRESS = 8;
  static final long RANGE_BYTES = 16;

  /** {@code gpunvme_plan_info}. */
  static final long PLAN = 32;

  static final long PLAN_IOS = 0;
  static final long PLAN_BYTES = 8;
  static final long PLAN_OVERREAD = 16;
  static final long PLAN_STAGED = 24;

  /** {@code gpunvme_tensor_read}. */
  static final long READ = 40;

  /** GPUNVME_TENSOR_BYTES. */
  static final int TENSOR_BYTES = -2;

  static final long READ_TENSOR = 0;
  static final long READ_DIMENSION = 4;
  static final long READ_START = 8;
  static final long READ_STOP = 16;
  static final long READ_ADDRESS = 24;
  static final long READ_CAPACITY = 32;

  /** {@code gpunvme_layer_size}. */
  static final long LAYER = 48;

  static final long LAYER_STORED = 0;
  static final long LAYER_USED = 8;
  static final long LAYER_UNCONVERTED = 16;
  static final long LAYER_CONVERTED = 24;
  static final long LAYER_EXPERTS = 32;
  static final long LAYER_ROUTER = 40;

  /** {@code gpunvme_layer_plan}. */
  static final long LAYER_PLAN = 88;

  static final long LAYER_PLAN_SLOT_BYTES = 0;
  static final long LAYER_PLAN_RING_BYTES = 8;
  static final long LAYER_PLAN_RESIDENT_BYTES = 16;
  static final long LAYER_PLAN_CONVERTED_BYTES = 24;
  static final long LAYER_PLAN_DEVICE_BYTES = 32;
  static final long LAYER_PLAN_PASS_BYTES = 40;
  static final long LAYER_PLAN_EXPERT_SLOT_BYTES = 48;
  static final long LAYER_PLAN_EXPERT_RING_BYTES = 56;
  static final long LAYER_PLAN_ROUTER_BYTES = 64;
  static final long LAYER_PLAN_SLOTS = 72;
  static final long LAYER_PLAN_READS = 76;
  static final long LAYER_PLAN_EXPERT_SLOTS = 80;

  /** {@code gpunvme_quantized}. */
  static final long QUANTIZED = 72;

  static final long QUANTIZED_TYPE = 0;
  static final long QUANTIZED_SOURCE = 8;
  static final long QUANTIZED_TARGET_TYPE = 16;
  static final long QUANTIZED_TARGET = 24;
  static final long QUANTIZED_ROWS = 32;
  static final long QUANTIZED_COLUMNS = 40;
  static final long QUANTIZED_SCALES = 48;
  static final long QUANTIZED_BLOCK_ROWS = 56;
  static final long QUANTIZED_BLOCK_COLUMNS = 64;

  /** {@code gpunvme_kernel_options}. */
  static final long KERNEL_OPTIONS = 24;

  static final long KERNEL_OPTIONS_PLACEMENT = 0;
  static final long KERNEL_OPTIONS_QUEUE_PAIRS = 4;
  static final long KERNEL_OPTIONS_DEPTH = 8;
  static final long KERNEL_OPTIONS_BUFFERS = 12;
  static final long KERNEL_OPTIONS_NSID = 16;
  static final long KERNEL_OPTIONS_FLAGS = 20;

  /** GPUNVME_KERNELS_RECOVER. */
  static final int KERNELS_RECOVER = 1;

  /** GPUNVME_DIRECTORY_SKIP. */
  static final int DIRECTORY_SKIP = 1;

  /** {@code gpunvme_cache_options}. */
  static final long CACHE_OPTIONS = 32;

  static final long CACHE_OPTIONS_BYTES = 0;
  static final long CACHE_OPTIONS_HOST_BYTES = 8;
  static final long CACHE_OPTIONS_TIMEOUT_NS = 16;
  static final long CACHE_OPTIONS_PAGE_BYTES = 24;
  static final long CACHE_OPTIONS_FLAGS = 28;

  /** GPUNVME_CACHE_UNCOUNTED. */
  static final int CACHE_UNCOUNTED = 1;

  /** GPUNVME_CACHE_VERIFY. */
  static final int CACHE_VERIFY = 2;

  /** {@code enum gpunvme_placement}. */
  static final List<Placement> PLACEMENTS =
      List.of(Placement.VRAM_DATA, Placement.HOST, Placement.VRAM);

  private Structs() {}

  /**
   * @param pointer null: the defaults
   */
  static KernelStorageOptions kernelOptions(MemorySegment pointer) {
    KernelStorageOptions usual = KernelStorageOptions.in(PLACEMENTS.getFirst());
    if (pointer.address() == 0) {
      return usual;
    }
    MemorySegment options = CTypes.at(pointer, KERNEL_OPTIONS);
    int placement = options.get(CTypes.INT, KERNEL_OPTIONS_PLACEMENT);
    int buffers = options.get(CTypes.INT, KERNEL_OPTIONS_BUFFERS);
    int nsid = options.get(CTypes.INT, KERNEL_OPTIONS_NSID);
    if (placement < 0 || placement >= PLACEMENTS.size()) {
      throw new InvalidRequestException(
          "placement %s is none of enum gpunvme_placement"
              .formatted(Integer.toUnsignedString(placement)));
    }
    int flags = options.get(CTypes.INT, KERNEL_OPTIONS_FLAGS);
    requireKnown(flags, KERNELS_RECOVER);
    return new KernelStorageOptions(
        nsid == 0 ? usual.nsid() : nsid,
        PLACEMENTS.get(placement),
        options.get(CTypes.INT, KERNEL_OPTIONS_QUEUE_PAIRS),
        options.get(CTypes.INT, KERNEL_OPTIONS_DEPTH),
        buffers == 0 ? usual.buffers() : buffers,
        (flags & KERNELS_RECOVER) != 0);
  }

  static PageCacheOptions cacheOptions(MemorySegment pointer) {
    MemorySegment options = CTypes.at(pointer, CACHE_OPTIONS);
    int flags = options.get(CTypes.INT, CACHE_OPTIONS_FLAGS);
    requireKnown(flags, CACHE_UNCOUNTED | CACHE_VERIFY);
    long bytes = CTypes.count(options.get(CTypes.LONG, CACHE_OPTIONS_BYTES), "size of a cache");
    int page = options.get(CTypes.INT, CACHE_OPTIONS_PAGE_BYTES);
    PageCacheOptions paged =
        page == 0 ? PageCacheOptions.of(bytes) : PageCacheOptions.of(bytes, page);
    long nanos = options.get(CTypes.LONG, CACHE_OPTIONS_TIMEOUT_NS);
    long tier = CTypes.count(options.get(CTypes.LONG, CACHE_OPTIONS_HOST_BYTES), "size of a tier");
    PageCacheOptions all = tier == 0 ? paged : paged.withHostTier(tier);
    if (nanos != 0) {
      all = all.withTimeout(Duration.ofNanos(nanos < 0 ? Long.MAX_VALUE : nanos));
    }
    if ((flags & CACHE_VERIFY) != 0) {
      all = all.withVerify();
    }
    return (flags & CACHE_UNCOUNTED) == 0 ? all : all.withoutCounting();
  }

  /** Whether all flags are some of those that there are. */
  static void requireKnown(int flags, int known) {
    if ((flags & ~known) != 0) {
      throw new InvalidRequestException(
          "flags %Xh are not known: there are %Xh".formatted(flags, known));
    }
  }

  static void info(MemorySegment out, GpuStorage storage) {
    MemorySegment info = CTypes.at(out, INFO);
    info.fill((byte) 0);
    info.set(CTypes.LONG, INFO_SIZE, storage.size());
    info.set(CTypes.LONG, INFO_GPU_BYTES, storage.gpuBytes());
    info.set(CTypes.INT, INFO_ALIGNMENT, storage.alignment());
    info.set(CTypes.INT, INFO_BLOCK_BYTES, storage.blockSize());
    info.set(CTypes.INT, INFO_GPU, storage.accelerator().gpu() ? 1 : 0);
    storage
        .accelerator()
        .cuda()
        .ifPresent(gpu -> info.set(CTypes.INT, INFO_DEVICE, gpu.context().device().ordinal()));
  }

  static List<Storage.Item> items(MemorySegment ranges, long count) {
    MemorySegment all = CTypes.array(ranges, count, RANGE);
    List<Storage.Item> items = new ArrayList<>(Math.toIntExact(count));
    for (long at = 0; at < all.byteSize(); at += RANGE) {
      items.add(
          new Storage.Item(
              CTypes.count(all.get(CTypes.LONG, at + RANGE_OFFSET), "offset"),
              all.get(CTypes.LONG, at + RANGE_ADDRESS),
              CTypes.count(all.get(CTypes.LONG, at + RANGE_BYTES), "length")));
    }
    return items;
  }

  static void plan(MemorySegment out, long ios, long bytes, long overread, long staged) {
    MemorySegment plan = CTypes.at(out, PLAN);
    plan.set(CTypes.LONG, PLAN_IOS, ios);
    plan.set(CTypes.LONG, PLAN_BYTES, bytes);
    plan.set(CTypes.LONG, PLAN_OVERREAD, overread);
    plan.set(CTypes.LONG, PLAN_STAGED, staged);
  }

  static List<Model.Read> reads(MemorySegment reads, long count) {
    MemorySegment all = CTypes.array(reads, count, READ);
    List<Model.Read> list = new ArrayList<>();
    for (long at = 0; at < all.byteSize(); at += READ) {
      int dimension = all.get(CTypes.INT, at + READ_DIMENSION);
      long start = all.get(CTypes.LONG, at + READ_START);
      long stop = all.get(CTypes.LONG, at + READ_STOP);
      list.add(
          new Model.Read(
              all.get(CTypes.INT, at + READ_TENSOR),
              slice(dimension, start, stop),
              all.get(CTypes.LONG, at + READ_ADDRESS),
              CTypes.count(all.get(CTypes.LONG, at + READ_CAPACITY), "capacity")));
    }
    return list;
  }

  private static @Nullable TensorSlice slice(int dimension, long start, long stop) {
    if (dimension == TENSOR_BYTES) {
      return new TensorSlice(TensorSlice.BYTES, start, stop);
    }
    return dimension < 0 ? null : new TensorSlice(dimension, start, stop);
  }

  static List<LayerSize> layerSizes(MemorySegment layers, long count) {
    MemorySegment all = CTypes.array(layers, count, LAYER);
    List<LayerSize> sizes = new ArrayList<>();
    for (long at = 0; at < all.byteSize(); at += LAYER) {
      sizes.add(
          new LayerSize(
              CTypes.count(all.get(CTypes.LONG, at + LAYER_STORED), "layer of length"),
              CTypes.count(all.get(CTypes.LONG, at + LAYER_USED), "layer of length"),
              CTypes.count(all.get(CTypes.LONG, at + LAYER_UNCONVERTED), "layer of length"),
              CTypes.count(all.get(CTypes.LONG, at + LAYER_CONVERTED), "layer of length"),
              CTypes.count(all.get(CTypes.LONG, at + LAYER_EXPERTS), "layer of length"),
              CTypes.count(all.get(CTypes.LONG, at + LAYER_ROUTER), "layer of length")));
    }
    return sizes;
  }

  static void layerPlan(MemorySegment out, StreamPlan from) {
    MemorySegment plan = CTypes.at(out, LAYER_PLAN);
    plan.set(CTypes.LONG, LAYER_PLAN_SLOT_BYTES, from.slotBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_RING_BYTES, from.ringBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_RESIDENT_BYTES, from.residentBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_CONVERTED_BYTES, from.convertedBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_DEVICE_BYTES, from.deviceBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_PASS_BYTES, from.passBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_EXPERT_SLOT_BYTES, from.expertSlotBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_EXPERT_RING_BYTES, from.expertRingBytes());
    plan.set(CTypes.LONG, LAYER_PLAN_ROUTER_BYTES, from.routerBytes());
    plan.set(CTypes.INT, LAYER_PLAN_SLOTS, from.slots());
    plan.set(CTypes.INT, LAYER_PLAN_READS, from.readsInFlight());
    plan.set(CTypes.INT, LAYER_PLAN_EXPERT_SLOTS, from.expertSlots());
  }

  static List<Dequantize.Item> quantized(MemorySegment tensors, long count) {
    MemorySegment all = CTypes.array(tensors, count, QUANTIZED);
    List<Dequantize.Item> list = new ArrayList<>(Math.toIntExact(count));
    for (long at = 0; at < all.byteSize(); at += QUANTIZED) {
      list.add(
          new Dequantize.Item(
              type(all.get(ValueLayout.ADDRESS, at + QUANTIZED_TYPE)),
              all.get(CTypes.LONG, at + QUANTIZED_SOURCE),
              type(all.get(ValueLayout.ADDRESS, at + QUANTIZED_TARGET_TYPE)),
              all.get(CTypes.LONG, at + QUANTIZED_TARGET),
              CTypes.count(all.get(CTypes.LONG, at + QUANTIZED_ROWS), "number of rows"),
              CTypes.count(all.get(CTypes.LONG, at + QUANTIZED_COLUMNS), "number of columns"),
              all.get(CTypes.LONG, at + QUANTIZED_SCALES),
              CTypes.count(all.get(CTypes.LONG, at + QUANTIZED_BLOCK_ROWS), "block of rows"),
              CTypes.count(
                  all.get(CTypes.LONG, at + QUANTIZED_BLOCK_COLUMNS), "block of columns")));
    }
    return list;
  }

  private static ElementType type(MemorySegment name) {
    String text = name.address() == 0 ? "NULL" : CTypes.text(name);
    try {
      return ElementType.valueOf(text);
    } catch (IllegalArgumentException e) {
      throw new InvalidRequestException("there is no type of elements '" + text + "'");
    }
  }

  /**
   * As much of a text as fits, with a terminating 0.
   *
   * @param needed becomes the bytes of all of it with the 0; may be null
   */
  static void text(String text, MemorySegment to, long capacity, MemorySegment needed) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (needed.address() != 0) {
      CTypes.setLong(needed, bytes.length + 1L);
    }
    if (capacity > 0 && to.address() != 0) {
      int n = (int) Math.min(bytes.length, capacity - 1);
      MemorySegment target = CTypes.at(to, n + 1L);
      MemorySegment.copy(bytes, 0, target, CTypes.BYTE, 0, n);
      target.set(CTypes.BYTE, n, (byte) 0);
    }
  }
}
