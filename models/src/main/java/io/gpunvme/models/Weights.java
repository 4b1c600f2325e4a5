package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.ModelFiles;
import io.gpunvme.models.format.ModelFiles.ModelFile;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.models.tensor.TensorKernels;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.ReadBytes;
import io.gpunvme.storage.plan.Ranges;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The weights of a model: lists its tensors, and loads them into an accelerator's memory. Safe for
 * all threads. Loaded tensors outlive it.
 */
public final class Weights implements AutoCloseable {
  private static final int MOST_PIECES = 1 << 16;

  private static final int FILES_AT_A_TIME = 2;

  /** Bytes for which a second thread is worth its start. */
  private static final long TOGETHER = 64L << 20;

  private final WeightSource source;
  private final Accelerator accelerator;

  Weights(WeightSource source, Accelerator accelerator) {
    this.source = source;
    this.accelerator = accelerator;
  }

  /**
   * Opens a model by one of its files (safetensors, an index of shards, GGUF, a part of a split
   * GGUF) or by a folder with exactly one model.
   *
   * @param address a file or folder of the running system, as {@link StorageAddress} reads it, or
   *     one in a file system on a device: {@code vfio:0000:01:00.0#1:/models/llama}; or a device,
   *     partition, set or image with a raw model ({@link RawModelWriter})
   * @throws io.gpunvme.models.format.FormatException if it cannot be used
   * @throws io.gpunvme.storage.path.StorageException if it cannot be read, or not by that path
   */
  public static Weights open(StorageAddress address, Accelerator accelerator) {
    return open(address, accelerator, StorageOptions.defaults());
  }

  /** The same with options for the storage. */
  public static Weights open(
      StorageAddress address, Accelerator accelerator, StorageOptions options) {
    FileAddress inside = address.inside();
    Path file = address.file();
    if (inside != null) {
      return onDevice(inside, accelerator, options);
    }
    if (file == null || RawWeights.isMeant(file)) {
      return new Weights(
          RawWeights.open(GpuStorage.open(address, accelerator, options)), accelerator);
    }
    return inFolder(address, file, accelerator, options);
  }

  private static Weights inFolder(
      StorageAddress address, Path model, Accelerator accelerator, StorageOptions options) {
    Path parent = model.toAbsolutePath().getParent();
    Path folder = parent == null || Files.isDirectory(model) ? model : parent;
    Function<ModelFile, GpuStorage> open =
        f -> GpuStorage.open(address.at(folder.resolve(f.name())), accelerator, options);
    return new Weights(
        new FileWeights(model.toString(), ModelFiles.open(model), open, () -> {}), accelerator);
  }

  private static Weights onDevice(
      FileAddress address, Accelerator accelerator, StorageOptions options) {
    Volume volume = Volume.open(address, accelerator, options, false);
    try {
      boolean isFolder = volume.find(address.path()).kind() == FileNode.Kind.FOLDER;
      int slash = address.path().lastIndexOf('/');
      VolumeFolder folder =
          new VolumeFolder(
              volume, isFolder ? address.path() : address.path().substring(0, Math.max(1, slash)));
      String name = isFolder ? ModelFiles.find(folder) : address.path().substring(slash + 1);
      return new Weights(
          new FileWeights(
              address.toString(),
              ModelFiles.open(folder, name),
              f -> volume.file(folder.child(f.name())),
              volume::close),
          accelerator);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, volume::close);
      throw e;
    }
  }

  /**
   * Opens a model whose files are at known places of an open device.
   *
   * @param device the caller closes it after this
   * @param folder its name in messages
   * @param files the places of the bytes of each file, by name, from byte 0 without gaps
   * @throws io.gpunvme.models.format.FormatException if they are not exactly one model
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static Weights over(
      GpuStorage device, String folder, Map<String, List<FileExtent>> files) {
    ExtentFolder all = new ExtentFolder(device, folder, files);
    ModelFiles model = ModelFiles.open(all, ModelFiles.find(all));
    return new Weights(
        new FileWeights(folder, model, f -> all.storage(f.name()), () -> {}), device.accelerator());
  }

  /**
   * The same model for another accelerator: over the same open files or SSDs, with queue pairs of
   * its own, as {@link GpuStorage#on}. Both can read at the same time.
   *
   * @param other the caller closes it after this
   * @return to be closed before this; otherwise what it reads is closed with this
   */
  public Weights on(Accelerator other) {
    return new Weights(new WeightsOn(source, other), other);
  }

  /** Its name in messages. */
  public String name() {
    return source.name();
  }

  /** The format, e.g. {@code safetensors, 4 files}. */
  public String format() {
    return source.format();
  }

  /** The tensors by name, in the order of the files. */
  public SequencedMap<String, TensorInfo> tensors() {
    SequencedMap<String, TensorInfo> all = new LinkedHashMap<>();
    source.tensors().forEach((name, placed) -> all.put(name, placed.tensor()));
    return all;
  }

  /** Names of the files. */
  public List<String> files() {
    return source.files();
  }

  /**
   * The file that a tensor is in.
   *
   * @throws io.gpunvme.base.InvalidRequestException if there is no such tensor
   */
  public String file(String tensor) {
    Placed placed = source.tensors().get(tensor);
    if (placed == null) {
      throw new InvalidRequestException("there is no tensor '" + tensor + "'");
    }
    return source.files().get(placed.file());
  }

  /** The model's metadata. */
  public Map<String, MetaValue> metadata() {
    return source.metadata();
  }

  /** Bytes of all tensors. */
  public long bytes() {
    return source.tensors().values().stream().mapToLong(p -> p.tensor().bytes()).sum();
  }

  /**
   * Plans a load, and reads nothing.
   *
   * @throws io.gpunvme.base.InvalidRequestException if the request does not fit the model
   * @throws io.gpunvme.storage.path.StorageException if the load needs more memory than the request
   *     allows
   */
  public LoadPlan plan(LoadRequest request) {
    return LoadPlan.of(request, source.tensors());
  }

  /**
   * A load that has not begun; see {@link Load#run}.
   *
   * @param plan of {@link #plan}
   * @param manifest the checksums to compare with; null: none
   */
  public Load prepare(LoadPlan plan, @Nullable Manifest manifest) {
    return new Load(source, accelerator, plan, manifest);
  }

  /** Loads. A load that fails frees everything. */
  public LoadedWeights load(LoadRequest request) {
    try (Load load = prepare(plan(request), null)) {
      return load.run(LoadListener.NONE);
    }
  }

  /**
   * Bytes of a tensor or of a part of it.
   *
   * @throws InvalidRequestException if there is no such tensor, or the slice does not fit it
   */
  public long bytes(String tensor, @Nullable TensorSlice slice) {
    return part(tensor, slice).bytes();
  }

  private Part part(String tensor, @Nullable TensorSlice slice) {
    Placed placed = source.tensors().get(tensor);
    if (placed == null) {
      throw new InvalidRequestException(
          "%s has no tensor '%s'; inspect shows those that it has".formatted(name(), tensor));
    }
    return Part.of(placed, slice);
  }

  /**
   * Reads tensors, or parts of them, to memory of the caller: file by file, or two files at a time
   * where there is much to read, so that what moves the data has something to do while one file
   * ends and the next begins.
   *
   * @throws InvalidRequestException if there is no such tensor, a slice does not fit, or a part is
   *     not inside its buffer; then nothing is read
   * @throws io.gpunvme.storage.path.StorageException if reading fails; some parts may have been
   *     read
   */
  public void read(List<TensorTarget> targets) {
    read(targets, () -> false);
  }

  /**
   * The same, which ends early if it is told to.
   *
   * @param cancelled asked every 10 ms or so by each thread that reads
   */
  public void read(List<TensorTarget> targets, BooleanSupplier cancelled) {
    read(targets, cancelled, GpuStorage::read, TOGETHER);
  }

  /** How a file is read: {@link GpuStorage#read(Ranges, List, BooleanSupplier)}. */
  interface Reader {
    void read(GpuStorage storage, Ranges ranges, List<DeviceBuffer> buffers, BooleanSupplier ends);
  }

  /**
   * @param together with fewer bytes the files are read one by one
   */
  void read(List<TensorTarget> targets, BooleanSupplier cancelled, Reader reader, long together) {
    long bytes = 0;
    Map<Integer, FileReads> files = new TreeMap<>();
    for (TensorTarget t : targets) {
      Part part = part(t.tensor(), t.slice());
      if (t.offset() < 0 || part.bytes() > t.buffer().size() - t.offset()) {
        throw new InvalidRequestException(
            "%d bytes of tensor '%s' at %d are not inside a buffer of %d bytes"
                .formatted(part.bytes(), t.tensor(), t.offset(), t.buffer().size()));
      }
      files.computeIfAbsent(part.file(), _ -> new FileReads()).add(part, t);
      bytes += part.bytes();
    }
    if (bytes == 0) {
      return;
    }
    AtomicReference<Throwable> failure = new AtomicReference<>();
    AtomicBoolean interrupted = new AtomicBoolean();
    BooleanSupplier ends =
        () -> failure.get() != null || interrupted.get() || cancelled.getAsBoolean();
    Queue<Map.Entry<Integer, FileReads>> left = new ConcurrentLinkedQueue<>(files.entrySet());
    Runnable work =
        () -> {
          for (var next = left.poll(); next != null && failure.get() == null; next = left.poll()) {
            try {
              next.getValue().carryOut(source.storage(next.getKey()), reader, ends);
            } catch (RuntimeException | Error e) {
              failure.compareAndSet(null, e);
              throw e;
            }
          }
        };
    int others = bytes < together ? 0 : Math.min(files.size(), FILES_AT_A_TIME) - 1;
    WorkScope scope = new WorkScope(Weights::startThread);
    Runnable own =
        () -> {
          Collections.nCopies(others, work).forEach(scope::help);
          work.run();
        };
    List<Throwable> failures =
        new ArrayList<>(scope.finish(own, () -> {}, () -> interrupted.set(true)));
    // The first that failed, and not one that it has ended.
    failures.sort(Comparator.comparing(e -> e != failure.get()));
    WorkScope.rethrow(failures);
  }

  private static void startThread(Runnable work) {
    Thread.ofPlatform().daemon().name("gpunvme-weights").start(work);
  }

  /** What is read from one file. */
  private static final class FileReads {
    private final Ranges.Builder ranges = Ranges.builder();
    private final List<DeviceBuffer> buffers = new ArrayList<>();
    private boolean any;

    void add(Part part, TensorTarget target) {
      if (buffers.isEmpty() || buffers.getLast() != target.buffer()) {
        buffers.add(target.buffer());
      }
      for (long row = 0; row < part.rows() && part.width() > 0; row++) {
        long from = part.offset() + row * part.pitch();
        long to = target.offset() + row * part.width();
        ranges.join(from, part.width(), buffers.size() - 1, to);
        any = true;
      }
    }

    void carryOut(GpuStorage storage, Reader reader, BooleanSupplier ends) {
      if (any) {
        reader.read(storage, ranges.build(), buffers, ends);
      }
    }
  }

  /** What was read for this accelerator since it was opened, by anybody; without the headers. */
  public Map<PathKind, ReadBytes> readBytes() {
    Map<PathKind, ReadBytes> all = new EnumMap<>(PathKind.class);
    for (int file = 0; file < source.files().size(); file++) {
      source
          .storage(file)
          .readBytes()
          .forEach((path, read) -> all.merge(path, read, ReadBytes::plus));
    }
    return all;
  }

  /**
   * Opens a loader of layers that are made of tensors: {@link #layer} makes them.
   *
   * @param maxLayerBytes of the longest layer, &gt; 0
   * @param pipelineDepth slots, 1..1024
   * @return to be closed before this
   * @see LayerLoader#open(List, long, int, LayerOptions)
   */
  public LayerLoader layers(long maxLayerBytes, int pipelineDepth, LayerOptions options) {
    List<GpuStorage> storages = new ArrayList<>();
    for (int file = 0; file < source.files().size(); file++) {
      storages.add(source.storage(file));
    }
    return LayerLoader.open(storages, maxLayerBytes, pipelineDepth, options);
  }

  /**
   * A layer for the loaders of {@link #layers}.
   *
   * @param name for messages
   * @param tensors which, and their places in the layer, where they do not overlap
   * @throws InvalidRequestException if there is no such tensor, a slice does not fit or has more
   *     than {@value #MOST_PIECES} rows, or a place is impossible
   */
  public Layer layer(String name, List<TensorPlace> tensors) {
    List<Layer.Piece> pieces = new ArrayList<>();
    for (TensorPlace t : tensors) {
      Part part = part(t.tensor(), t.slice());
      if (part.rows() > MOST_PIECES) {
        throw new InvalidRequestException(
            "layer '%s': %s of tensor '%s' is in %d pieces, more than %d: slice dimension 0"
                .formatted(name, t.slice(), t.tensor(), part.rows(), MOST_PIECES));
      }
      for (long row = 0; row < part.rows(); row++) {
        pieces.add(
            new Layer.Piece(
                part.file(),
                part.offset() + row * part.pitch(),
                part.width(),
                t.place() + row * part.width()));
      }
    }
    return new Layer(name, pieces);
  }

  /** Reads all tensors and computes their checksums. */
  public Manifest manifest(LoadListener listener) {
    Map<String, Manifest.Entry> entries = new LinkedHashMap<>();
    try (TensorKernels kernels = TensorKernels.open(accelerator)) {
      for (String name : source.tensors().keySet()) {
        try (Load load = prepare(plan(LoadRequest.all().names(List.of(name))), null);
            LoadedWeights one = load.run(listener)) {
          LoadedTensor t = one.tensor(name);
          int crc = kernels.crc32c(t.buffer(), t.offset(), t.bytes());
          entries.put(name, new Manifest.Entry(t.bytes(), crc));
        }
      }
    }
    return new Manifest(entries);
  }

  /** The checksums that are stored with the tensors; only raw models have them. */
  public Optional<Manifest> storedManifest() {
    return source.storedManifest();
  }

  /** The accelerator whose memory the tensors are loaded into. */
  public Accelerator accelerator() {
    return accelerator;
  }

  WeightSource source() {
    return source;
  }

  /** Closes the files. Loaded tensors stay. */
  @Override
  public void close() {
    source.close();
  }
}
