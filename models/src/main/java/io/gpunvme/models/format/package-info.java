/**
 * What files of model weights say about themselves: which tensors are where, of which type and
 * shape. Formats are safetensors (single, or sharded with an index) and GGUF (single or split).
 *
 * <p>In: headers, checked completely before anything is believed; what is wrong is a {@link
 * io.gpunvme.models.format.FormatException}. Memory and time are bounded by what the files really
 * hold. Out: the tensors' data, which nothing here reads, and where it goes.
 */
@NullMarked
package io.gpunvme.models.format;

import org.jspecify.annotations.NullMarked;
