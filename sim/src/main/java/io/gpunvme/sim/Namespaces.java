package io.gpunvme.sim;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.FreeMemory;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.media.FileMedia;
import io.gpunvme.sim.media.MappedMedia;
import io.gpunvme.sim.media.Media;
import io.gpunvme.sim.media.NullMedia;
import io.gpunvme.sim.media.RamMedia;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The namespaces of the controller by identifier, and their media.
 *
 * <p>Looking one up is safe for all threads; creating and deleting happens on worker 0. A deleted
 * namespace's medium stays open until {@link #close}, since another worker may still be using it.
 */
final class Namespaces implements AutoCloseable {
  /** Bytes that Namespace Management can allocate beyond what is configured. */
  static final long SPARE = 16L << 30;

  private final SimConfig config;
  private final AtomicReferenceArray<@Nullable SimNamespace> byId;
  private final List<Media> opened = new ArrayList<>();
  private final AtomicLong flushFailures = new AtomicLong();

  /**
   * Opens the media.
   *
   * @throws InvalidRequestException if a file does not fit; nothing stays open
   */
  Namespaces(SimConfig config) {
    this.config = config;
    byId = new AtomicReferenceArray<>(config.maxNamespaces() + 1);
    try {
      for (NamespaceConfig ns : config.namespaces()) {
        int nsid = opened.size() + 1;
        put(nsid, open(nsid, ns), ns);
      }
    } catch (InvalidRequestException e) {
      closeQuietly();
      throw e;
    }
  }

  private static Media open(int nsid, NamespaceConfig ns) {
    try {
      return switch (ns.kind()) {
        case RAM -> ram(nsid, ns.size());
        case NULL -> new NullMedia(ns.size());
        case FILE -> FileMedia.open(file(ns), ns.size(), ns.lbaSize(), ns.readOnly());
        case MAPPED -> MappedMedia.open(file(ns), ns.size(), ns.lbaSize(), ns.readOnly());
      };
    } catch (PosixException e) {
      throw new InvalidRequestException(
          "namespace " + nsid + " of " + ns.size() + " bytes cannot be had: " + e.getMessage());
    }
  }

  /** Its pages are taken when they are written: only what could never be full is refused. */
  private static Media ram(int nsid, long size) {
    long most = FreeMemory.here().most();
    if (size > most) {
      throw new InvalidRequestException(
          "namespace %d of %d bytes: memory and swap have %d; use media=file or a smaller size"
              .formatted(nsid, size, most));
    }
    return new RamMedia(size);
  }

  private static Path file(NamespaceConfig ns) {
    Path file = ns.file();
    if (file == null) {
      throw new IllegalStateException("checked by NamespaceConfig");
    }
    return file;
  }

  private SimNamespace put(int nsid, Media media, NamespaceConfig ns) {
    opened.add(media);
    // A deleted namespace's identifiers never come back: the number of media opened so far differs.
    String identity = "gpunvme:" + config.serial() + ":" + opened.size();
    SimNamespace namespace = new SimNamespace(nsid, identity, ns.lbaSize(), media, ns.readOnly());
    byId.set(nsid, namespace);
    return namespace;
  }

  /** NN: the highest valid identifier. */
  int max() {
    return config.maxNamespaces();
  }

  /** Whether the identifier is one a namespace could have; the broadcast value is not. */
  boolean valid(int nsid) {
    return nsid > 0 && nsid <= max();
  }

  /** The status of an NSID that must name one active namespace (Base 2.0, 3.2.1). */
  int check(int nsid) {
    if (active(nsid) != null) {
      return 0;
    }
    return valid(nsid) || nsid == Sqe.NSID_ALL
        ? StatusCode.INVALID_FIELD.dnr()
        : StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
  }

  /** The allocated namespace, attached or not; null if there is none or the NSID is invalid. */
  @Nullable SimNamespace allocated(int nsid) {
    return valid(nsid) ? byId.get(nsid) : null;
  }

  /** The active (attached) namespace, or null. */
  @Nullable SimNamespace active(int nsid) {
    SimNamespace ns = allocated(nsid);
    return ns != null && ns.attached() ? ns : null;
  }

  /** All allocated namespaces, ascending. */
  List<SimNamespace> allocated() {
    List<SimNamespace> all = new ArrayList<>();
    for (int nsid = 1; nsid <= max(); nsid++) {
      SimNamespace ns = byId.get(nsid);
      if (ns != null) {
        all.add(ns);
      }
    }
    return all;
  }

  /** All active namespaces, ascending. */
  List<SimNamespace> active() {
    return allocated().stream().filter(SimNamespace::attached).toList();
  }

  /** Bytes in all allocated namespaces. */
  long allocatedBytes() {
    return allocated().stream().mapToLong(ns -> ns.media().size()).sum();
  }

  /** TNVMCAP: bytes that namespaces could have together. */
  long totalBytes() {
    long configured =
        opened.stream().limit(config.namespaces().size()).mapToLong(Media::size).sum();
    return config.namespaceManagement() ? configured + SPARE : configured;
  }

  /** The lowest identifier no namespace has, or 0. */
  int freeId() {
    for (int nsid = 1; nsid <= max(); nsid++) {
      if (byId.get(nsid) == null) {
        return nsid;
      }
    }
    return 0;
  }

  /** Creates a detached namespace in memory; null if the system refuses the memory. */
  @Nullable SimNamespace create(int nsid, long bytes, int lbaSize) {
    NamespaceConfig ns = NamespaceConfig.ram(bytes, lbaSize);
    try {
      Media media = open(nsid, ns);
      SimNamespace created = put(nsid, media, ns);
      created.attach(false);
      return created;
    } catch (InvalidRequestException e) {
      return null;
    }
  }

  /** Takes a namespace away and gives its memory back; a backing file stays as it is. */
  void delete(SimNamespace ns) throws IOException {
    byId.set(ns.nsid(), null);
    ns.attach(false);
    if (!(ns.media() instanceof FileMedia)) {
      ns.media().trim(0, ns.media().size());
    }
  }

  /** Makes everything written durable as far as that is possible. */
  void flush() {
    for (SimNamespace ns : allocated()) {
      try {
        ns.media().flush();
      } catch (IOException e) {
        flushFailures.incrementAndGet();
      }
    }
  }

  /** How often {@link #flush} failed for a namespace; counted as media errors. */
  long flushFailures() {
    return flushFailures.get();
  }

  /**
   * Closes all media.
   *
   * @throws IOException the first failure, after trying all
   */
  @Override
  public void close() throws IOException {
    CloseAll.each(opened, Media::close);
  }

  private void closeQuietly() {
    try {
      close();
    } catch (IOException e) {
      throw new InvalidRequestException("closing the backing files failed: " + e.getMessage());
    }
  }
}
