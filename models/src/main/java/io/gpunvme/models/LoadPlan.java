package io.gpunvme.models;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.base.Align;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.LoadRequest.Memory;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The plan of a load, made before anything is read or allocated: which bytes it reads, how, where
 * they go, and how much memory it needs. Immutable.
 */
public final class LoadPlan {
  /** The method of reading a tensor's bytes. */
  public enum Method {
    /** They are in one piece. */
    CONTIGUOUS,
    /** Row by row: the bytes between rows are not read. */
    ROWS,
    /** All of it is read into the ring, and the rows are copied from there. */
    GATHER
  }

  /**
   * One tensor's place.
   *
   * @param part what of it
   * @param method how it is read
   * @param allocation which
   * @param offset in the allocation
   */
  record Place(Part part, Method method, int allocation, long offset) {}

  /** Tensors begin at multiples of this: what vector loads and copies of any kind want. */
  static final long ALIGNMENT = 256;

  /** Longest allocation that tensors share. */
  private static final long LONGEST_SHARED = 1L << 30;

  private static final long PAGE = 4096;

  /** What one more I/O costs, in bytes that could be read meanwhile. */
  private static final long PER_READ = 16 << 10;

  private final LoadRequest request;
  private final List<Place> places;
  private final List<Long> allocations;
  private final long readBytes;

  private LoadPlan(
      LoadRequest request, List<Place> places, List<Long> allocations, long readBytes) {
    this.request = request;
    this.places = List.copyOf(places);
    this.allocations = List.copyOf(allocations);
    this.readBytes = readBytes;
  }

  /**
   * Plans.
   *
   * @throws InvalidRequestException if a name is none of the tensors', a slice does not fit, or
   *     nothing is left
   * @throws StorageException if more memory would be needed than the request allows
   */
  static LoadPlan of(LoadRequest request, Map<String, Placed> tensors) {
    List<Part> parts = new ArrayList<>();
    for (Placed placed : chosen(request, tensors)) {
      parts.add(part(request, placed));
    }
    LoadPlan plan = place(request, parts);
    long most = request.maxGpuBytes();
    if (most > 0 && plan.gpuBytes() > most) {
      throw new StorageException(
          Kind.ACCELERATOR_MEMORY,
          "weights",
          -1,
          -1,
          "%d bytes for tensors and %d for the ring are more than the %d allowed: load fewer tensors, or one rank's part"
              .formatted(plan.tensorBytes(), plan.ringBytes(), most),
          null);
    }
    return plan;
  }

  private static List<Placed> chosen(LoadRequest request, Map<String, Placed> tensors) {
    List<String> names = request.names();
    List<Placed> some = new ArrayList<>();
    if (names == null) {
      some.addAll(tensors.values());
    } else {
      Set<String> seen = new HashSet<>();
      for (String name : names) {
        Placed placed = tensors.get(name);
        if (placed == null || !seen.add(name)) {
          throw new InvalidRequestException(
              placed == null ? "there is no tensor '" + name + "'" : name + " is named twice");
        }
        some.add(placed);
      }
    }
    for (String name : request.slices().keySet()) {
      if (!tensors.containsKey(name)) {
        throw new InvalidRequestException("there is no tensor '" + name + "' to slice");
      }
    }
    if (request.pattern() != null) {
      some.removeIf(p -> !request.pattern().matcher(p.tensor().name()).find());
    }
    // A model may be empty; a choice that leaves nothing is a mistake.
    if (some.isEmpty() && !tensors.isEmpty()) {
      throw new InvalidRequestException("no tensor is left to be loaded");
    }
    sort(request, some);
    return some;
  }

  private static void sort(LoadRequest request, List<Placed> some) {
    switch (request.order()) {
      case FILE ->
          some.sort(
              Comparator.comparingInt(Placed::file).thenComparingLong(p -> p.tensor().offset()));
      case LAYERS -> some.sort(Comparator.comparing(p -> p.tensor().name(), new LayerOrder()));
      case GIVEN -> {}
    }
  }

  private static Part part(LoadRequest request, Placed placed) {
    TensorSlice slice = request.slices().get(placed.tensor().name());
    if (slice == null && request.ranks() > 1) {
      slice = request.rules().slice(placed.tensor(), request.rank(), request.ranks());
    }
    return Part.of(placed, slice);
  }

  private static LoadPlan place(LoadRequest request, List<Part> parts) {
    List<Place> places = new ArrayList<>();
    List<Long> allocations = new ArrayList<>();
    boolean each = request.memory() == Memory.EACH;
    long used = 0;
    long read = 0;
    for (Part part : parts) {
      long bytes = Math.max(1, part.bytes());
      if (allocations.isEmpty() || each || used + bytes > LONGEST_SHARED) {
        allocations.add(0L);
        used = 0;
      }
      Method method = method(part, request.ringBytes());
      places.add(new Place(part, method, allocations.size() - 1, used));
      used = Align.upExact(used + bytes, ALIGNMENT);
      allocations.set(allocations.size() - 1, used);
      read += method == Method.GATHER ? part.span() : part.bytes();
    }
    return new LoadPlan(request, places, allocations, read);
  }

  /** Whatever reads fewer bytes, those counted that I/Os cost. */
  private static Method method(Part part, long ringBytes) {
    if (part.isContiguous()) {
      return Method.CONTIGUOUS;
    }
    long byRows = Align.upExact(part.width(), PAGE) + PAGE + PER_READ;
    boolean many = part.rows() > Batches.MOST_ROWS;
    return (byRows < part.pitch() && !many) || part.pitch() > ringBytes / 2
        ? Method.ROWS
        : Method.GATHER;
  }

  List<Place> places() {
    return places;
  }

  /** Bytes of each allocation. */
  List<Long> allocations() {
    return allocations;
  }

  LoadRequest request() {
    return request;
  }

  /** How many tensors. */
  public int tensors() {
    return places.size();
  }

  /** Bytes of the tensors, or of their loaded parts. */
  public long bytes() {
    return places.stream().mapToLong(p -> p.part().bytes()).sum();
  }

  /** Memory of the accelerator that the tensors take, alignment included. */
  public long tensorBytes() {
    return allocations.stream().mapToLong(Long::longValue).sum();
  }

  /** Memory of the accelerator that is used only during the load; 0 if no tensor needs the ring. */
  public long ringBytes() {
    long longest =
        places.stream()
            .filter(p -> p.method() == Method.GATHER)
            .mapToLong(p -> p.part().span())
            .max()
            .orElse(0);
    // It has two halves, and none needs room for more than there is.
    return longest == 0
        ? 0
        : longest > request.ringBytes() / 2
            ? request.ringBytes()
            : Math.min(request.ringBytes(), 2 * Align.upExact(longest, PAGE));
  }

  /** The most memory of the accelerator that tensors and ring take at a time. */
  public long gpuBytes() {
    return tensorBytes() + ringBytes();
  }

  /** Bytes to read, up to a block more at the ends of each piece. */
  public long readBytes() {
    return readBytes;
  }

  /** The plan as one JSON object. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("tensors", tensors());
    json.addProperty("bytes", bytes());
    json.addProperty("read_bytes", readBytes);
    json.addProperty("tensor_bytes", tensorBytes());
    json.addProperty("ring_bytes", ringBytes());
    json.addProperty("allocations", allocations.size());
    JsonArray list = new JsonArray();
    for (Place p : places) {
      JsonObject one = new JsonObject();
      one.addProperty("name", p.part().name());
      one.addProperty("type", p.part().tensor().type().name());
      JsonArray shape = new JsonArray();
      for (long d : p.part().shape()) {
        shape.add(d);
      }
      one.add("shape", shape);
      one.addProperty("slice", p.part().slice() == null ? null : p.part().slice().toString());
      one.addProperty("method", p.method().name().toLowerCase(java.util.Locale.ROOT));
      one.addProperty("file", p.part().file());
      one.addProperty("offset", p.part().offset());
      one.addProperty("bytes", p.part().bytes());
      list.add(one);
    }
    json.add("list", list);
    return json;
  }
}
