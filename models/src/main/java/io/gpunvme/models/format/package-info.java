/**
 * The headers of files of model weights: the tensors with their places, types and shapes. Formats
 * are safetensors (single, or sharded with an index) and GGUF (single or split).
 *
 * <p>In: headers, checked completely before they are used; a mistake is a {@link
 * io.gpunvme.models.format.FormatException}. The real size of the files bounds memory and time.
 * Out: the tensors' data, which nothing here reads, and its targets.
 */
@NullMarked
package io.gpunvme.models.format;

import org.jspecify.annotations.NullMarked;
