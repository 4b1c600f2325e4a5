package io.gpunvme.cuda;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;

/** What is open in a context. Safe for all threads. */
final class ResourceRegistry {
  private final SequencedSet<ContextResource> open = new LinkedHashSet<>();
  private boolean closing;

  /** False once the context is being closed: the resource is the caller's to free then. */
  synchronized boolean add(ContextResource resource) {
    if (!closing) {
      open.add(resource);
    }
    return !closing;
  }

  synchronized void remove(ContextResource resource) {
    open.remove(resource);
  }

  /** From now on nothing can be added; false if that was so already. */
  synchronized boolean beginClose() {
    boolean first = !closing;
    closing = true;
    return first;
  }

  synchronized void cancelClose() {
    closing = false;
  }

  synchronized List<ContextResource> newestFirst() {
    return List.copyOf(open.reversed());
  }

  synchronized ContextMemory memory() {
    long device = 0;
    long pinned = 0;
    for (ContextResource resource : open) {
      device += resource.deviceBytes();
      pinned += resource.pinnedBytes();
    }
    return new ContextMemory(device, pinned);
  }

  synchronized boolean isEmpty() {
    return open.isEmpty();
  }
}
