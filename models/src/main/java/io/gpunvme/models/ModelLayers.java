package io.gpunvme.models;

import io.gpunvme.base.Align;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.layer.Layer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The layers of a model, found by structure: of all sequences of numbered names in it, such as
 * {@code model.layers.0.…} or {@code blk.0.…}, the one with most bytes. A list within a layer, such
 * as experts, has fewer; or as many, and then the outer one counts. Experts are parts of their
 * layers, unless {@link #expertsApart} is asked. Immutable.
 */
public final class ModelLayers {
  private static final Pattern NUMBER = Pattern.compile("\\d{1,9}");

  /** A name that outside input makes longer is not looked at to its end. */
  private static final int MOST_PARTS = 32;

  /** What is converted to the type that parameters are used as; other types are not parameters. */
  private static final Set<ElementType> FLOATS =
      EnumSet.of(ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64);

  private static final Set<ElementType> EIGHT_BITS =
      EnumSet.of(ElementType.F8_E4M3, ElementType.F8_E5M2);

  /** What scales of a tensor are called: after its name. */
  private static final List<String> SCALES = List.of("_scale_inv", "_scale");

  private final String list;
  private final SortedMap<Integer, List<TensorInfo>> layers;

  /** Of the layers, in order. */
  private final List<Integer> numbers;

  private final List<TensorInfo> others;
  private final Set<String> scales;
  private final Set<String> quantised;
  private final ElementType type;
  private final OptionalInt perToken;

  /** By the number of their layer. */
  private final Map<Integer, LayerExperts> experts;

  private ModelLayers(
      String list,
      SortedMap<Integer, List<TensorInfo>> layers,
      List<TensorInfo> others,
      Set<String> scales,
      Set<String> quantised,
      ElementType type,
      OptionalInt perToken,
      Map<Integer, LayerExperts> experts) {
    this.list = list;
    this.layers = layers;
    numbers = List.copyOf(layers.keySet());
    this.others = others;
    this.scales = scales;
    this.quantised = quantised;
    this.type = type;
    this.perToken = perToken;
    this.experts = experts;
  }

  /**
   * Finds them.
   *
   * @param type that floating-point and quantised tensors are used as; null: the one that most
   *     elements have, of which quantised ones count as BF16
   * @throws InvalidRequestException if no name is numbered, or none of those has bytes
   * @throws io.gpunvme.storage.path.StorageException if there is a configuration, and reading fails
   */
  public static ModelLayers of(Weights weights, @Nullable ElementType type) {
    Collection<TensorInfo> tensors = weights.tensors().values();
    String list = longestList(tensors);
    if (list == null) {
      throw new InvalidRequestException(
          "%s has no list of layers: no tensor is named as in 'layers.0.weight'; inspect shows their names"
              .formatted(weights.name()));
    }
    SortedMap<Integer, List<TensorInfo>> layers = new TreeMap<>();
    List<TensorInfo> others = new ArrayList<>();
    for (TensorInfo tensor : tensors) {
      Integer number = number(tensor.name(), list);
      (number == null ? others : layers.computeIfAbsent(number, _ -> new ArrayList<>()))
          .add(tensor);
    }
    Set<String> scales = scales(weights.tensors().keySet());
    Set<String> quantised = quantised(tensors, scales);
    ElementType used = type == null ? usualType(tensors, scales, quantised) : type;
    OptionalInt perToken = ExpertsPerToken.of(weights.source());
    return new ModelLayers(list, layers, others, scales, quantised, used, perToken, Map.of());
  }

  /**
   * The same layers without their experts, where these are known to be one part for each: as
   * streaming reads them, with those experts besides that routers choose.
   */
  public ModelLayers expertsApart() {
    Map<Integer, LayerExperts> found = new TreeMap<>();
    layers.forEach(
        (number, tensors) -> {
          Map<String, TensorInfo> named = new LinkedHashMap<>();
          tensors.forEach(t -> named.put(within(t.name()), t));
          LayerExperts some = LayerExperts.find(named);
          // Layers 7 and 07 are one, and nobody knows which of their tensors count.
          if (some != null && named.size() == tensors.size()) {
            found.put(number, some);
          }
        });
    return new ModelLayers(list, layers, others, scales, quantised, type, perToken, found);
  }

  /** What a tensor of a layer is called there. */
  private String within(String name) {
    int dot = name.indexOf('.', list.length());
    return dot < 0 ? "" : name.substring(dot + 1);
  }

  /** What stands before the numbers, with the dot; null if there is none. */
  private static @Nullable String longestList(Collection<TensorInfo> tensors) {
    // In the order of insertion: an outer list comes before those within it.
    Map<String, Long> lists = new LinkedHashMap<>();
    for (TensorInfo tensor : tensors) {
      int at = 0;
      for (String part : tensor.name().split("\\.", MOST_PARTS)) {
        if (NUMBER.matcher(part).matches()) {
          lists.merge(tensor.name().substring(0, at), tensor.bytes(), Long::sum);
        }
        at += part.length() + 1;
      }
    }
    String best = null;
    long most = 0;
    for (Map.Entry<String, Long> one : lists.entrySet()) {
      if (one.getValue() > most) {
        best = one.getKey();
        most = one.getValue();
      }
    }
    return best;
  }

  /** Of the layer that a tensor is in; null if it is in none. */
  private static @Nullable Integer number(String name, String list) {
    if (!name.startsWith(list)) {
      return null;
    }
    String part = name.substring(list.length()).split("\\.", 2)[0];
    return NUMBER.matcher(part).matches() ? Integer.valueOf(part) : null;
  }

  /** As Python's {@code load} chooses it where the model's configuration says nothing. */
  private static ElementType usualType(
      Collection<TensorInfo> tensors, Set<String> scales, Set<String> quantised) {
    Map<ElementType, Long> elements = new TreeMap<>();
    for (TensorInfo tensor : tensors) {
      if (quantised.contains(tensor.name())) {
        elements.merge(ElementType.BF16, tensor.elements(), Long::sum);
      } else if (FLOATS.contains(tensor.type()) && !scales.contains(tensor.name())) {
        elements.merge(tensor.type(), tensor.elements(), Long::sum);
      }
    }
    return elements.entrySet().stream()
        .max(Map.Entry.comparingByValue())
        .map(Map.Entry::getKey)
        .orElse(ElementType.BF16);
  }

  /** What becomes floats before it is used: GGUF's blocks, and numbers of 8 bits with scales. */
  private static Set<String> quantised(Collection<TensorInfo> tensors, Set<String> scales) {
    Set<String> names = new HashSet<>();
    for (TensorInfo tensor : tensors) {
      String name = tensor.name();
      if (!tensor.type().isSafetensors()
          || EIGHT_BITS.contains(tensor.type())
          || tensor.type() == ElementType.I8
              && SCALES.stream().anyMatch(end -> scales.contains(name + end))) {
        names.add(name);
      }
    }
    return names;
  }

  /** What goes into other tensors while these become floats, and is no parameter itself. */
  private static Set<String> scales(Set<String> tensors) {
    return tensors.stream()
        .flatMap(name -> SCALES.stream().map(end -> name + end))
        .filter(tensors::contains)
        .collect(Collectors.toSet());
  }

  private boolean isConverted(TensorInfo tensor) {
    return scales.contains(tensor.name())
        || tensor.type() != type
            && (quantised.contains(tensor.name()) || FLOATS.contains(tensor.type()));
  }

  private long used(TensorInfo tensor) {
    if (scales.contains(tensor.name())) {
      return 0;
    }
    return isConverted(tensor) ? type.bytes(tensor.elements()) : tensor.bytes();
  }

  /** The names of the layers, with N in place of the number: {@code model.layers.N}. */
  public String names() {
    return list + "N";
  }

  /** The type that floating-point and quantised tensors are used as. */
  public ElementType type() {
    return type;
  }

  /** How many layers there are. */
  public int count() {
    return layers.size();
  }

  /** Bytes of the layers as they are stored. */
  public long bytes() {
    return layers.values().stream().flatMap(List::stream).mapToLong(TensorInfo::bytes).sum();
  }

  /** Bytes of the tensors that are in no layer, as they are used. */
  public long fixedBytes() {
    return others.stream().mapToLong(this::used).sum();
  }

  /** The sizes of the layers, for {@link StreamPlan#of}. */
  public List<LayerSize> sizes() {
    return layers.entrySet().stream()
        .map(e -> size(e.getValue(), experts.get(e.getKey())))
        .toList();
  }

  private LayerSize size(List<TensorInfo> tensors, @Nullable LayerExperts apart) {
    Sums layer = new Sums();
    tensors.stream()
        .filter(t -> apart == null || !apart.has(t))
        .forEach(t -> layer.add(t.bytes(), 0, used(t), isConverted(t)));
    if (apart == null) {
      return new LayerSize(layer.stored, layer.used, layer.unconverted, layer.converted);
    }
    Sums all = new Sums();
    long one = 0;
    for (LayerExperts.Parameter p : apart.parameters()) {
      long used = p.tensors().stream().mapToLong(this::used).sum();
      boolean isConverted = isConverted(p.tensors().getFirst());
      all.add(p.bytes(), p.scaleBytes(), used, isConverted);
      // One by one, and then they go to their places.
      one = Math.max(one, isConverted ? used / apart.count() : 0);
    }
    TensorInfo router = apart.router();
    return new LayerSize(
        layer.stored,
        layer.used + all.used,
        layer.unconverted + all.unconverted,
        layer.converted + all.converted + one,
        all.stored,
        router == null ? 0 : aligned(used(router)));
  }

  /** Of memory that parameters take. */
  private static final class Sums {
    private long stored;
    private long used;
    private long unconverted;
    private long converted;

    void add(long bytes, long scales, long usedBytes, boolean isConverted) {
      long from = aligned(bytes) + aligned(scales);
      long to = aligned(usedBytes);
      stored += from;
      used += to;
      unconverted += isConverted ? from : 0;
      converted += isConverted ? to : 0;
    }
  }

  private static long aligned(long bytes) {
    return Align.up(bytes, StreamPlan.ALIGNMENT);
  }

  /** How many experts a router chooses for a token, if the model's configuration says it. */
  public OptionalInt expertsPerToken() {
    return perToken;
  }

  /** Whether any layer has experts that are apart. */
  public boolean hasExperts() {
    return !experts.isEmpty();
  }

  /**
   * The experts of a layer that are apart; null if it has none.
   *
   * @param index of the layer, from 0, in the order of their numbers
   * @throws IndexOutOfBoundsException if there is no such layer
   */
  public @Nullable LayerExperts experts(int index) {
    return experts.get(numbers.get(index));
  }

  /**
   * What a layer is made of, and its place in a slot; without tensors that have no bytes, and
   * without experts that are apart.
   *
   * @param index of the layer, from 0, in the order of their numbers
   * @throws IndexOutOfBoundsException if there is no such layer
   */
  public List<TensorPlace> tensors(int index) {
    List<TensorPlace> places = new ArrayList<>();
    long at = 0;
    LayerExperts apart = experts(index);
    for (TensorInfo tensor : layers.getOrDefault(numbers.get(index), List.of())) {
      if (tensor.bytes() > 0 && (apart == null || !apart.has(tensor))) {
        places.add(new TensorPlace(tensor.name(), null, at));
        at += aligned(tensor.bytes());
      }
    }
    return places;
  }

  /**
   * A layer for the loaders of {@link Weights#layers}.
   *
   * @param weights that the layers were found in
   * @param index as for {@link #tensors}; the layer has bytes
   * @throws IndexOutOfBoundsException if there is no such layer
   */
  public Layer layer(Weights weights, int index) {
    return weights.layer(list + numbers.get(index), tensors(index));
  }
}
