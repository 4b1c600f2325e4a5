/**
 * Somebody's SSDs, for commands of our own: what an address names, where its bytes are, and what
 * the SSDs say of themselves. Blocks that are overwritten for a while are kept, and put back.
 *
 * <p>In: opening any address down to the blocks of its SSDs ({@code Ssds}, {@code Places}),
 * counters and links ({@code SsdState}, {@code SsdFacts}), runs of blocks to and from streams
 * ({@code BlockMover}), and borrowing ({@code BorrowedBlocks}). Out: transfers through the storage
 * API ({@code storage}), and what is done with the blocks ({@code tools.bench}, {@code
 * tools.demo}).
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.tools.ssd;
