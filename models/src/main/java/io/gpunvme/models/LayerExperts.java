package io.gpunvme.models;

import io.gpunvme.models.format.TensorInfo;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The experts of a layer, of which each token goes to some only: matrices gate, up and down for
 * each, stored one by one, as {@code mlp.experts.7.up_proj.weight} and {@code
 * block_sparse_moe.experts.7.w3.weight}, or as stacks, as {@code mlp.experts.gate_up_proj} and
 * {@code ffn_up_exps.weight}. Immutable.
 */
public final class LayerExperts {
  private static final Pattern NAME =
      Pattern.compile(
          "((?:.*\\.)?)experts\\."
              + "(?:(\\d{1,9})\\.(gate_proj|up_proj|down_proj|w[123])\\.weight"
              + "|(gate_up_proj|down_proj))"
              + "(_scale_inv|_scale)?");

  private static final Pattern GGUF_NAME = Pattern.compile("ffn_(gate|up|down)_exps\\.weight");
  private static final Pattern ANY_NAME = Pattern.compile("(?:.*\\.)?experts\\..*|.*_exps\\..*");
  private static final String GGUF_ROUTER = "ffn_gate_inp.weight";

  /** Ends a router's name; not that of its scales, which may have a row for each expert, too. */
  private static final String WEIGHT = "weight";

  /** In the names of what all tokens go to. */
  private static final String SHARED = "shared";

  /** What a matrix is for. Gate and up are one matrix in some models. */
  private enum Role {
    GATE,
    UP,
    GATE_UP,
    DOWN
  }

  /**
   * What becomes one parameter of the model: tensors one after the other, then their scales.
   *
   * @param scales of quantised tensors that have some
   */
  record Parameter(List<TensorInfo> tensors, List<TensorInfo> scales) {
    long bytes() {
      return bytesOf(tensors);
    }

    long scaleBytes() {
      return bytesOf(scales);
    }

    private static long bytesOf(List<TensorInfo> tensors) {
      return tensors.stream().mapToLong(TensorInfo::bytes).sum();
    }
  }

  private final int count;
  private final List<Parameter> parameters;
  private final @Nullable TensorInfo router;
  private final Set<String> names = new HashSet<>();

  private LayerExperts(int count, List<Parameter> parameters, @Nullable TensorInfo router) {
    this.count = count;
    this.parameters = parameters;
    this.router = router;
    parameters.stream()
        .flatMap(p -> Stream.concat(p.tensors.stream(), p.scales.stream()))
        .forEach(t -> names.add(t.name()));
  }

  /**
   * Finds those of a layer, as {@code find_experts} of Python's {@code _experts.py} finds them in a
   * module.
   *
   * @param layer its tensors by what they are called within it, such as {@code mlp.gate.weight}
   * @return null if there are none, or they are not known to be one part for each
   */
  static @Nullable LayerExperts find(Map<String, TensorInfo> layer) {
    List<Matrix> found = new ArrayList<>();
    for (Map.Entry<String, TensorInfo> one : layer.entrySet()) {
      Matrix matrix = Matrix.of(one.getKey(), one.getValue());
      if (matrix != null) {
        found.add(matrix);
      } else if (ANY_NAME.matcher(one.getKey()).matches()) {
        return null; // such as a bias
      }
    }
    if (found.stream().map(Matrix::place).distinct().count() != 1) {
      return null;
    }
    Stack down = Stack.of(found, Role.DOWN);
    Stack up = gateAndUp(found);
    if (down == null || up == null || !up.isBefore(down)) {
      return null;
    }
    TensorInfo router = router(layer, found.getFirst().place, down.count);
    LayerExperts experts =
        new LayerExperts(down.count, List.of(up.parameter(), down.parameter()), router);
    // A layer whose slot has nothing in it is not streamed.
    boolean more = layer.values().stream().anyMatch(t -> t.bytes() > 0 && !experts.has(t));
    return more ? experts : null;
  }

  private static @Nullable Stack gateAndUp(List<Matrix> found) {
    Stack gate = Stack.of(found, Role.GATE);
    Stack up = Stack.of(found, Role.UP);
    Stack both = Stack.of(found, Role.GATE_UP);
    if (both != null) {
      return gate == null && up == null ? both : null;
    }
    return gate != null && up != null && gate.isLike(up) ? gate.with(up) : null;
  }

  private static @Nullable TensorInfo router(
      Map<String, TensorInfo> layer, Place place, int count) {
    for (Map.Entry<String, TensorInfo> one : layer.entrySet()) {
      String name = one.getKey();
      TensorInfo tensor = one.getValue();
      boolean near =
          place.gguf
              ? name.equals(GGUF_ROUTER)
              : name.startsWith(place.block)
                  && name.endsWith(WEIGHT)
                  && !ANY_NAME.matcher(name).matches()
                  && !name.contains(SHARED);
      if (near && tensor.rank() == 2 && tensor.dimension(0) == count) {
        return tensor;
      }
    }
    return null;
  }

  /** How many. */
  public int count() {
    return count;
  }

  /** Bytes of one, as it is stored. */
  public long bytes() {
    return parameters.stream().mapToLong(p -> p.bytes() + p.scaleBytes()).sum() / count;
  }

  List<Parameter> parameters() {
    return parameters;
  }

  /** What scores them: a row for each; null if it is not known. */
  @Nullable TensorInfo router() {
    return router;
  }

  /** Whether a tensor of the layer is theirs. */
  boolean has(TensorInfo tensor) {
    return names.contains(tensor.name());
  }

  /**
   * Where tensors of experts are.
   *
   * @param block what stands before {@code experts.}
   * @param single if they are stored one by one
   */
  private record Place(String block, boolean single, boolean gguf) {}

  /** A tensor of experts. */
  private record Matrix(Place place, int number, Role role, boolean isScale, TensorInfo tensor) {
    static @Nullable Matrix of(String name, TensorInfo tensor) {
      Matcher gguf = GGUF_NAME.matcher(name);
      if (gguf.matches()) {
        return new Matrix(new Place("", false, true), 0, role(gguf.group(1)), false, tensor);
      }
      Matcher one = NAME.matcher(name);
      if (!one.matches()) {
        return null;
      }
      String number = one.group(2);
      boolean single = number != null;
      return new Matrix(
          new Place(one.group(1), single, false),
          single ? Integer.parseInt(number) : 0,
          role(single ? one.group(3) : one.group(4)),
          one.group(5) != null,
          tensor);
    }

    private static Role role(String name) {
      return switch (name) {
        case "gate_proj", "w1", "gate" -> Role.GATE;
        case "up_proj", "w3", "up" -> Role.UP;
        case "gate_up_proj" -> Role.GATE_UP;
        default -> Role.DOWN;
      };
    }
  }

  /** The matrices of all experts for one role. */
  private record Stack(int count, long rows, long columns, Parameter parameter) {
    /** Null if there are none, or they are not alike. */
    static @Nullable Stack of(List<Matrix> found, Role role) {
      SortedMap<Integer, TensorInfo> tensors = new TreeMap<>();
      SortedMap<Integer, TensorInfo> scales = new TreeMap<>();
      for (Matrix m : found) {
        if (m.role == role && (m.isScale ? scales : tensors).put(m.number, m.tensor) != null) {
          return null;
        }
      }
      List<TensorInfo> all = List.copyOf(tensors.values());
      if (all.isEmpty() || !isOfOneKind(all) || tensors.lastKey() != all.size() - 1) {
        return null;
      }
      TensorInfo first = all.getFirst();
      boolean single = found.getFirst().place.single;
      if (first.rank() != (single ? 2 : 3)) {
        return null;
      }
      long count = single ? all.size() : first.dimension(0);
      List<TensorInfo> own = List.copyOf(scales.values());
      boolean hasOwn =
          scales.keySet().equals(tensors.keySet())
              && isOfOneKind(own)
              && (single || own.getFirst().rank() > 0 && own.getFirst().dimension(0) == count);
      if (!own.isEmpty() && !hasOwn || count > Integer.MAX_VALUE) {
        return null; // such as one scale for a whole stack
      }
      return new Stack(
          (int) count,
          first.dimension(first.rank() - 2),
          first.dimension(first.rank() - 1),
          new Parameter(all, own));
    }

    private static boolean isOfOneKind(List<TensorInfo> tensors) {
      TensorInfo first = tensors.getFirst();
      return tensors.stream()
          .allMatch(t -> t.type() == first.type() && Arrays.equals(t.shape(), first.shape()));
    }

    boolean isLike(Stack other) {
      return count == other.count
          && isOfOneKind(both(parameter.tensors, other.parameter.tensors))
          && parameter.scales.size() == other.parameter.scales.size()
          && (parameter.scales.isEmpty()
              || isOfOneKind(both(parameter.scales, other.parameter.scales)));
    }

    /** With the rows of another one below. */
    Stack with(Stack other) {
      return new Stack(
          count,
          2 * rows,
          columns,
          new Parameter(
              both(parameter.tensors, other.parameter.tensors),
              both(parameter.scales, other.parameter.scales)));
    }

    private static List<TensorInfo> both(List<TensorInfo> some, List<TensorInfo> others) {
      return Stream.concat(some.stream(), others.stream()).toList();
    }

    /**
     * Whether each of at least two experts goes through a matrix of this, and then of the other.
     */
    boolean isBefore(Stack down) {
      return count > 1
          && count == down.count
          && rows == 2 * down.columns
          && columns == down.rows
          && rows > 0
          && columns > 0;
    }
  }
}
