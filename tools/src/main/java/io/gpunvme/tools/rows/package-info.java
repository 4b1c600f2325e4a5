/** Rows of a matrix on SSDs, gathered and overwritten at random: how fast, and by whom. */
@NullMarked
package io.gpunvme.tools.rows;

import org.jspecify.annotations.NullMarked;
