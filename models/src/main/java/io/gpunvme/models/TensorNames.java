package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Names of tensors, and of the layers that they are in. */
public final class TensorNames {
  private TensorNames() {}

  /**
   * The tensors that names stand for. A name is a tensor's, or that of a layer such as {@code
   * layers.3} or {@code blk.3}, which stands for all tensors in whose names it is, between dots or
   * the name's ends.
   *
   * @param all the model's tensors, in the order in which a layer's are wanted
   * @throws InvalidRequestException if a name stands for nothing, or a tensor is named twice
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
