package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Resolves names of tensors and of their layers. */
public final class TensorNames {
  private TensorNames() {}

  /**
   * The tensors that names stand for. A name is that of a tensor, or of a layer such as {@code
   * layers.3} or {@code blk.3}. A layer stands for all tensors whose names contain it, between dots
   * or the name's ends.
   *
   * @param all the model's tensors, in the order for the tensors of a layer
   * @throws InvalidRequestException if a name stands for no tensor, or a tensor is named twice
   */
  public static List<String> of(Collection<String> all, List<String> wanted) {
    Set<String> chosen = new LinkedHashSet<>();
    for (String name : wanted) {
      List<String> meant = all.contains(name) ? List.of(name) : layer(all, name);
      if (meant.isEmpty()) {
        throw new InvalidRequestException("there is no tensor or layer '" + name + "'");
      }
      for (String tensor : meant) {
        if (!chosen.add(tensor)) {
          throw new InvalidRequestException(
              "tensor '%s' is named twice, the second time by '%s'".formatted(tensor, name));
        }
      }
    }
    return new ArrayList<>(chosen);
  }

  private static List<String> layer(Collection<String> all, String name) {
    return name.isEmpty()
        ? List.of()
        : all.stream().filter(t -> ("." + t + ".").contains("." + name + ".")).toList();
  }
}
