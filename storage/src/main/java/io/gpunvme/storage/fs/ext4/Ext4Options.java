package io.gpunvme.storage.fs.ext4;

/**
 * What may be overlooked when a file system is opened.
 *
 * @param withUnreplayedJournal go on although the journal holds changes that were not made yet:
 *     what was written last may be missing, and structures may contradict each other
 */
public record Ext4Options(boolean withUnreplayedJournal) {
  /** Nothing. */
  public static final Ext4Options STRICT = new Ext4Options(false);
}
