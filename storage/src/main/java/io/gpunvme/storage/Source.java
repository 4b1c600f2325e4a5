package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.Verdict;
import java.util.List;
import java.util.Map;

/** Something that can be opened by one path or several. Safe for all threads. */
interface Source extends AutoCloseable {
  /** Its name in messages. */
  String name();

  /** Bytes in it now. */
  long size();

  /**
   * As {@link #size}, for a read that ends there. A size that was known before is enough for it: if
   * the source has become shorter since, the read itself finds out.
   */
  default long sizeForRead(long end) {
    return size();
  }

  /** Its logical block in bytes, by which LBAs count; 512 if it has no blocks of its own. */
  int blockSize();

  /** What each path says of it. Opens none of them. */
  List<Verdict> verdicts();

  /**
   * Opens a path. Called once for each kind at most.
   *
   * @throws StorageException if that path is not possible; the message says why and what to do
   */
  DataPath open(PathKind kind);

  /** Share of the ranges' bytes that the page cache holds, 0..1; 0 where there is none. */
  double resident(List<Range> ranges);

  /**
   * Where bytes of it are on SSDs of our own.
   *
   * @throws StorageException if it is on none
   */
  default List<BlockRun> blocks(long offset, long length) {
    throw onNone();
  }

  /**
   * All blocks of the namespaces of ours that it is on: of one, or of several in turns.
   *
   * @throws StorageException if it is on none, or they are no stripes of whole namespaces or
   *     partitions
   */
  default StripeSet set() {
    throw onNone();
  }

  /**
   * Where all of it is in that set, in the order of its bytes; what lies nowhere is left out.
   *
   * @throws StorageException as {@link #set}, or if a part does not begin with a block
   */
  default List<DeviceExtent> extents() {
    throw onNone();
  }

  private StorageException onNone() {
    return unsupported("is a file of a mounted file system: the kernel drives its SSD");
  }

  /** What cannot be done with it. */
  default StorageException unsupported(String why) {
    return unsupported(name(), why);
  }

  /** What cannot be done with something of this name. */
  static StorageException unsupported(String name, String why) {
    return new StorageException(StorageException.Kind.UNSUPPORTED, name, -1, -1, why, null);
  }

  /** Where our threads that serve it are; {@link NumaHome#NONE} if it is on several SSDs. */
  default NumaHome home() {
    return NumaHome.NONE;
  }

  /** For people: what was chosen of NUMA nodes for each SSD or file that it is on, by its name. */
  default Map<String, String> homes() {
    return Map.of(name(), home().toString());
  }

  /**
   * The same bytes for another accelerator, by paths of its own over what this has open.
   *
   * @return to be closed before this
   */
  Source on(Accelerator other);

  /**
   * Returns when everything whose writing is over is on stable storage.
   *
   * @throws RuntimeException of the layer below, or a {@link StorageException}
   */
  void flush();

  @Override
  void close();
}
