package io.gpunvme.models;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The tensors of a load. Each tensor may be closed by itself. A tensor that {@link #take} returned
 * outlives this.
 */
public final class LoadedWeights implements AutoCloseable {
  private final Map<String, LoadedTensor> tensors = new LinkedHashMap<>();
  private final LoadReport report;

  LoadedWeights(List<LoadedTensor> all, LoadReport report) {
    all.forEach(t -> tensors.put(t.name(), t));
    this.report = report;
  }

  /** All tensors that were not taken, in the order of loading. */
  public synchronized Collection<LoadedTensor> tensors() {
    return List.copyOf(tensors.values());
  }

  /**
   * A tensor, which stays in this.
   *
   * @throws InvalidRequestException if there is none of that name
   */
  public synchronized LoadedTensor tensor(String name) {
    LoadedTensor tensor = tensors.get(name);
    if (tensor == null) {
      throw new InvalidRequestException(
          "tensor '" + name + "' was not loaded, or was taken already");
    }
    return tensor;
  }

  /** Takes a tensor out of this; the caller closes it. */
  public synchronized LoadedTensor take(String name) {
    LoadedTensor tensor = tensor(name);
    tensors.remove(name);
    return tensor;
  }

  /** The report of the load. */
  public LoadReport report() {
    return report;
  }

  /** The names of all tensors that were not taken. */
  public synchronized Collection<String> names() {
    return Collections.unmodifiableCollection(List.copyOf(tensors.keySet()));
  }

  /** Closes all tensors that were not taken. */
  @Override
  public synchronized void close() {
    List<LoadedTensor> all = List.copyOf(tensors.values());
    tensors.clear();
    CloseAll.each(all, LoadedTensor::close);
  }
}
