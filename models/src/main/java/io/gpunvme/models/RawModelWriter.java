package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.LoadRequest.Order;
import io.gpunvme.models.TensorPieces.Piece;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.models.raw.RawLayout;
import io.gpunvme.models.raw.Superblock;
import io.gpunvme.models.tensor.Crc32c;
import io.gpunvme.models.tensor.TensorKernels;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageReader;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.fs.FileSystems;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Writes a model to a raw namespace, partition, set or image (docs/raw-models.md). The model goes
 * through the accelerator's memory in batches, so it may be larger than that memory.
 *
 * <p>The first write makes the old superblock invalid. The new superblock, which makes the model
 * valid, is written last, when everything else is on stable storage. After a failure at any time in
 * between, the device has no model, and never half of one.
 *
 * <p>For one thread, except {@link #cancel}.
 */
public final class RawModelWriter {
  /** What goes through the accelerator's memory at a time. */
  private static final long BATCH = 128 << 20;

  /** What is zeroed at first: behind it nobody looks for signatures of file systems. */
  private static final long SIGNATURES = 128 << 10;

  /** Longest transfer between memory of the host and the target. */
  private static final int PIECE = 4 << 20;

  private static final long BLOCK = 4096;
  private static final int SECTOR = 512;

  private final Weights model;
  private final GpuStorage target;
  private final RawWriteOptions options;
  private final RawLayout layout;
  private final long batchBytes;
  private final boolean hadTable;
  private final AtomicBoolean cancelled = new AtomicBoolean();
  private final Map<String, Integer> checksums = new LinkedHashMap<>();
  private volatile @Nullable Load current;
  private long readNanos;
  private long writeNanos;
  private String path = "";
  private String mode = "";

  private RawModelWriter(
      Weights model,
      GpuStorage target,
      RawWriteOptions options,
      RawLayout layout,
      long batchBytes,
      boolean hadTable) {
    this.model = model;
    this.target = target;
    this.options = options;
    this.layout = layout;
    this.batchBytes = batchBytes;
    this.hadTable = hadTable;
  }

  /**
   * Plans the layout of the model and checks the content at the start of the target. Writes
   * nothing.
   *
   * @param model the caller keeps it open, and closes it
   * @param target the caller keeps it open, and closes it; nobody else uses it
   * @throws InvalidRequestException if the options are not possible, the model and the target have
   *     different accelerators, or the target has content that may not be overwritten
   * @throws StorageException {@link Kind#NO_SPACE} if the target is too small
   */
  public static RawModelWriter prepare(Weights model, GpuStorage target, RawWriteOptions options) {
    return prepare(model, target, options, BATCH);
  }

  static RawModelWriter prepare(
      Weights model, GpuStorage target, RawWriteOptions options, long batchBytes) {
    if (model.accelerator() != target.accelerator()) {
      throw new InvalidRequestException(
          "the model and the target were opened for different accelerators");
    }
    List<TensorInfo> tensors = new ArrayList<>(model.tensors().values());
    if (options.order() == Order.LAYERS) {
      tensors.sort(Comparator.comparing(TensorInfo::name, new LayerOrder()));
    }
    RawLayout layout =
        RawLayout.of(
            options.alignment(), options.name(), model.format(), model.metadata(), tensors);
    if (layout.totalBytes() > target.size()) {
      throw new StorageException(
          Kind.NO_SPACE,
          target.address().toString(),
          -1,
          -1,
          "the model needs %d bytes here (%d of tensors), but there are only %d"
              .formatted(layout.totalBytes(), model.bytes(), target.size()),
          null);
    }
    String there = contents(target);
    if (!there.isEmpty() && !options.overwrite()) {
      throw new InvalidRequestException(
          "%s has %s: add --overwrite to overwrite it".formatted(target.address(), there));
    }
    return new RawModelWriter(model, target, options, layout, batchBytes, !there.isEmpty());
  }

  /** What it begins with, as far as that is known; empty if it is not. */
  private static String contents(GpuStorage target) {
    try (StorageReader reader = new StorageReader(target)) {
      return Superblock.isThere(reader) ? "a raw model" : FileSystems.contents(reader, SECTOR);
    }
  }

  /** Bytes that it takes on the target, from its first one on. */
  public long totalBytes() {
    return layout.totalBytes();
  }

  /** Bytes that {@link #run} reports to its listener in all. */
  public long listenedBytes() {
    return model.bytes() * (options.verify() ? 2 : 1);
  }

  /** Asks {@link #run} to end; it then fails with {@link Kind#CANCELLED}. Any thread. */
  public void cancel() {
    cancelled.set(true);
    Load load = current;
    if (load != null) {
      load.cancel();
    }
  }

  /**
   * Writes the model.
   *
   * @param listener gets the bytes that are written, and those that are read back
   * @throws StorageException if reading, writing or verifying fails, or it was cancelled. The
   *     target then has no valid model, unless only the last flush failed, or reading the
   *     superblock back
   */
  public RawWriteReport run(LoadListener listener) {
    long start = System.nanoTime();
    long verifyNanos = 0;
    byte[] index;
    invalidate();
    try (TensorKernels kernels = TensorKernels.open(model.accelerator())) {
      for (List<Piece> batch : TensorPieces.batches(layout.tensors(), batchBytes)) {
        copy(batch, kernels, listener);
      }
      index = layout.index(checksums);
      write(layout.indexOffset(), index);
      target.flush();
      if (options.verify()) {
        long before = System.nanoTime();
        readBack(kernels, listener);
        require(index, layout.indexOffset(), "the index");
        verifyNanos = System.nanoTime() - before;
      }
    }
    throwIfCancelled();
    Superblock superblock =
        layout.superblock(
            index,
            UUID.randomUUID(),
            Instant.now().truncatedTo(ChronoUnit.MILLIS),
            RawWeights.stripe(target.address()));
    byte[] block = superblock.encode();
    write(0, block);
    target.flush();
    if (options.verify()) {
      require(block, 0, "the superblock");
    }
    return new RawWriteReport(
        superblock.uuid(),
        path,
        mode,
        layout.tensors().size(),
        model.bytes(),
        totalBytes(),
        System.nanoTime() - start,
        readNanos,
        writeNanos,
        verifyNanos,
        options.verify() ? layout.tensors().size() : 0);
  }

  /** From now on there is nothing valid, and nothing that looks like a file system. */
  private void invalidate() {
    throwIfCancelled();
    long size = target.size();
    write(0, new byte[(int) Math.min(size, SIGNATURES)]);
    if (hadTable) {
      // The second copy of a GPT is at the end.
      long end = Math.min(size, BLOCK);
      write(size - end, new byte[(int) end]);
    }
    target.flush();
  }

  private void throwIfCancelled() {
    if (cancelled.get()) {
      throw new StorageException(
          Kind.CANCELLED, target.address().toString(), -1, -1, "cancelled", null);
    }
  }

  /** From the model to the accelerator's memory, and from there to the target. */
  private void copy(List<Piece> batch, TensorKernels kernels, LoadListener listener) {
    throwIfCancelled();
    long start = System.nanoTime();
    try (Load load = model.prepare(request(batch), null)) {
      current = load;
      throwIfCancelled();
      try (LoadedWeights loaded = load.run(LoadListener.NONE)) {
        List<LoadedTensor> tensors =
            batch.stream().map(p -> loaded.tensor(tensor(p).name())).toList();
        checksum(batch, tensors, kernels);
        long read = System.nanoTime();
        write(batch, tensors);
        readNanos += read - start;
        writeNanos += System.nanoTime() - read;
      }
    } finally {
      current = null;
    }
    listener.loaded(batch.stream().mapToLong(Piece::bytes).sum());
  }

  private TensorInfo tensor(Piece piece) {
    return layout.tensors().get(piece.tensor());
  }

  private LoadRequest request(List<Piece> batch) {
    LoadRequest request =
        LoadRequest.all()
            .names(batch.stream().map(p -> tensor(p).name()).toList())
            .order(Order.GIVEN);
    for (Piece p : batch) {
      TensorSlice slice = p.slice();
      if (slice != null) {
        request = request.slice(tensor(p).name(), slice);
      }
    }
    return request;
  }

  private void checksum(List<Piece> batch, List<LoadedTensor> tensors, TensorKernels kernels) {
    int[] sums =
        kernels.crc32c(
            tensors.stream()
                .map(t -> new TensorKernels.Piece(t.buffer(), t.offset(), t.bytes()))
                .toList());
    for (int i = 0; i < sums.length; i++) {
      Piece p = batch.get(i);
      int before = checksums.getOrDefault(tensor(p).name(), 0);
      checksums.put(tensor(p).name(), Crc32c.combine(before, sums[i], p.bytes()));
    }
  }

  private void write(List<Piece> batch, List<LoadedTensor> tensors) {
    List<Range> ranges = new ArrayList<>();
    for (int i = 0; i < batch.size(); i++) {
      long at = tensor(batch.get(i)).offset() + batch.get(i).offset();
      LoadedTensor t = tensors.get(i);
      // Whole blocks go straight to the device; the rest takes a detour.
      long whole = t.bytes() & -BLOCK;
      if (whole > 0) {
        ranges.add(new Range(at, t.buffer(), t.offset(), whole));
      }
      if (whole < t.bytes()) {
        ranges.add(new Range(at + whole, t.buffer(), t.offset() + whole, t.bytes() - whole));
      }
    }
    if (!ranges.isEmpty()) {
      TransferResult result = target.write(ranges);
      path = result.path().toString();
      mode = result.mode();
    }
  }

  // ---- bytes of the host

  private void write(long offset, byte[] bytes) {
    try (DeviceBuffer buffer = buffer(bytes.length)) {
      for (int done = 0; done < bytes.length; ) {
        int n = Math.min(PIECE, bytes.length - done);
        buffer.copyFromHost(MemorySegment.ofArray(bytes).asSlice(done, n), 0);
        TransferResult result = target.write(offset + done, buffer, 0, n);
        path = result.path().toString();
        mode = result.mode();
        done += n;
      }
    }
  }

  private DeviceBuffer buffer(int bytes) {
    Accelerator accelerator = target.accelerator();
    return accelerator.allocatePinned(Math.clamp(bytes, 1, PIECE));
  }

  // ---- reading back

  /** Through the accelerator's memory again, with the checksums that were taken on the way. */
  private void readBack(TensorKernels kernels, LoadListener listener) {
    Map<String, Integer> sums = new HashMap<>();
    try (DeviceBuffer buffer = target.accelerator().allocate(Math.min(batchBytes, mostBytes()))) {
      for (TensorInfo t : layout.tensors()) {
        int sum = 0;
        for (long done = 0; done < t.bytes(); ) {
          throwIfCancelled();
          long n = Math.min(buffer.size(), t.bytes() - done);
          target.read(t.offset() + done, buffer, 0, n);
          sum = Crc32c.combine(sum, kernels.crc32c(buffer, 0, n), n);
          listener.loaded(n);
          done += n;
        }
        sums.put(t.name(), sum);
      }
    }
    for (TensorInfo t : layout.tensors()) {
      int wrote = checksums.getOrDefault(t.name(), 0);
      int read = sums.getOrDefault(t.name(), 0);
      if (read != wrote) {
        throw new StorageException(
            Kind.IO,
            target.address().toString(),
            t.offset(),
            t.bytes(),
            "tensor '%s' reads back with CRC-32C %08x, but was written with %08x"
                .formatted(t.name(), read, wrote),
            null);
      }
    }
  }

  private long mostBytes() {
    return layout.tensors().stream().mapToLong(TensorInfo::bytes).reduce(1, Math::max);
  }

  private void require(byte[] expected, long offset, String what) {
    byte[] there = new byte[expected.length];
    try (StorageReader reader = new StorageReader(target)) {
      reader.read(offset, MemorySegment.ofArray(there));
    }
    if (!Arrays.equals(there, expected)) {
      throw new StorageException(
          Kind.IO,
          target.address().toString(),
          offset,
          expected.length,
          what + " does not read back as it was written",
          null);
    }
  }
}
