package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a load brought. Each tensor may be closed by itself, or outlive this if {@link #take} is
 * asked for it.
 */
public final class LoadedWeights implements AutoCloseable {
  private final Map<String, LoadedTensor> tensors = new LinkedHashMap<>();
  private final LoadReport report;

  LoadedWeights(List<LoadedTensor> all, LoadReport report) {
    all.forEach(t -> tensors.put(t.name(), t));
    this.report = report;
  }

  /** All that are still here, in the order in which they were loaded. */
  public synchronized Collection<LoadedTensor> tensors() {
    return List.copyOf(tensors.values());
  }

  /**
   * One of them; stays here.
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

  /** One of them, which is the caller's to close from now on. */
  public synchronized LoadedTensor take(String name) {
    LoadedTensor tensor = tensor(name);
    tensors.remove(name);
    return tensor;
  }

  /** How it went. */
  public LoadReport report() {
    return report;
  }

  /** Names of all that are still here. */
  public synchronized Collection<String> names() {
    return Collections.unmodifiableCollection(List.copyOf(tensors.keySet()));
  }

  /** Closes those that are still here. */
  @Override
  public synchronized void close() {
    tensors.values().forEach(LoadedTensor::close);
    tensors.clear();
  }
}
