//! Images as matrices: one column for every position of a window.

/// A window that moves over an image with channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Channels of the image.
    pub channels: usize,
    /// Height of the image.
    pub height: usize,
    /// Width of the image.
    pub width: usize,
    /// Side of the window.
    pub side: usize,
    /// Pixels between two positions.
    pub stride: usize,
    /// Pixels around the image that count as zero, or, for maxima, do not count.
    pub padding: usize,
}

impl Window {
    /// Positions from top to bottom and from left to right.
    pub(super) fn positions(&self) -> [usize; 2] {
        [self.height, self.width].map(|side| (side + 2 * self.padding - self.side) / self.stride + 1)
    }

    /// Values in the window, over all channels: rows of the matrix.
    pub(super) fn rows(&self) -> usize {
        self.channels * self.side * self.side
    }

    /// Positions of the window: columns of the matrix.
    pub(super) fn columns(&self) -> usize {
        let [down, right] = self.positions();
        down * right
    }

    /// For a place in the window, the range of positions along one axis at which it lies inside the image, and the pixel of the
    /// first of them.
    fn inside(&self, place: usize, side: usize, positions: usize) -> (usize, usize, usize) {
        // At position p the place lies on pixel p * stride + place - padding.
        let first = self.padding.saturating_sub(place).div_ceil(self.stride);
        let last = (side + self.padding - place).div_ceil(self.stride).min(positions);
        (first.min(last), last, (first * self.stride + place).saturating_sub(self.padding))
    }

    /// Writes the matrix of an image to `columns`; strides are 1.
    pub(super) fn to_columns(self, image: &[f32], columns: &mut Vec<f32>) {
        debug_assert_eq!(self.stride, 1, "convolutions have stride 1");
        let [down, right] = self.positions();
        columns.clear();
        columns.resize(self.rows() * down * right, 0.0);
        self.for_each_run(|row, y, channel_row, (from, to, pixel)| {
            let out = &mut columns[(row * down + y) * right..][from..to];
            out.copy_from_slice(&image[channel_row * self.width + pixel..][..to - from]);
        });
    }

    /// Adds up a matrix where its values came from: the transpose of [`Window::to_columns`].
    pub(super) fn add_columns(self, columns: &[f32], image: &mut [f32]) {
        let [down, right] = self.positions();
        image.fill(0.0);
        self.for_each_run(|row, y, channel_row, (from, to, pixel)| {
            let run = &columns[(row * down + y) * right..][from..to];
            let out = &mut image[channel_row * self.width + pixel..][..to - from];
            out.iter_mut().zip(run).for_each(|(sum, value)| *sum += value);
        });
    }

    /// Calls `visit` with the row of the matrix, the vertical position, the row of pixels over all channels, and the run of
    /// horizontal positions with its first pixel.
    fn for_each_run(self, mut visit: impl FnMut(usize, usize, usize, (usize, usize, usize))) {
        let [down, right] = self.positions();
        let mut row = 0;
        for channel in 0..self.channels {
            for i in 0..self.side {
                let (top, bottom, first_pixel) = self.inside(i, self.height, down);
                for j in 0..self.side {
                    let run = self.inside(j, self.width, right);
                    for y in top..bottom {
                        visit(row, y, channel * self.height + first_pixel + (y - top), run);
                    }
                    row += 1;
                }
            }
        }
    }

    /// The largest value of every window in every channel, and its position in the image; of equal ones the first.
    pub(super) fn maxima(self, image: &[f32], out: &mut [f32], origins: &mut [u32]) {
        let [down, right] = self.positions();
        let clip = |position: usize, side: usize| {
            let first = position * self.stride;
            (first.saturating_sub(self.padding), (first + self.side - self.padding).min(side))
        };
        let mut at = 0;
        for channel in 0..self.channels {
            for y in 0..down {
                let (top, bottom) = clip(y, self.height);
                for x in 0..right {
                    let (left, right) = clip(x, self.width);
                    let mut largest = f32::NEG_INFINITY;
                    let mut origin = (channel * self.height + top) * self.width + left;
                    for i in top..bottom {
                        let row = (channel * self.height + i) * self.width;
                        for j in left..right {
                            if image[row + j] > largest {
                                (largest, origin) = (image[row + j], row + j);
                            }
                        }
                    }
                    (out[at], origins[at]) = (image[origin], origin as u32);
                    at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { channels: 2, height: 4, width: 5, side: 3, stride: 1, padding: 1 };

    #[test]
    fn columns_hold_what_the_window_sees() {
        let image: Vec<f32> = (1..=40).map(|v| v as f32).collect();
        let mut columns = Vec::new();
        WINDOW.to_columns(&image, &mut columns);
        assert_eq!((WINDOW.rows(), WINDOW.columns(), columns.len()), (18, 20, 360));
        let pixel = |c: usize, y: isize, x: isize| {
            let inside = (0..4).contains(&y) && (0..5).contains(&x);
            if inside { image[c * 20 + y as usize * 5 + x as usize] } else { 0.0 }
        };
        for c in 0..2 {
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                for (y, x) in (0..4).flat_map(|y| (0..5).map(move |x| (y, x))) {
                    let row = (c * 3 + i as usize) * 3 + j as usize;
                    let seen = columns[row * 20 + y as usize * 5 + x as usize];
                    assert_eq!(seen, pixel(c, y + i - 1, x + j - 1), "{c} {i} {j} {y} {x}");
                }
            }
        }
        // The transpose: <A x, z> = <x, A' z> for all x and z.
        let z: Vec<f32> = (0..360).map(|v| ((v * 37) % 11) as f32).collect();
        let mut back = vec![7.0; 40];
        WINDOW.add_columns(&z, &mut back);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        assert_eq!(dot(&columns, &z), dot(&image, &back));
    }

    #[test]
    fn maxima_skip_the_padding_and_take_the_first_of_equals() {
        let window = Window { channels: 1, height: 4, width: 4, side: 3, stride: 2, padding: 1 };
        let image: Vec<f32> = (0..16).map(|v| -1.0 - v as f32).collect();
        let (mut out, mut origins) = (vec![0.0; 4], vec![9; 4]);
        window.maxima(&image, &mut out, &mut origins);
        assert_eq!((out, origins), (vec![-1.0, -2.0, -5.0, -6.0], vec![0, 1, 4, 5]));
        let (mut out, mut origins) = (vec![0.0; 4], vec![9; 4]);
        window.maxima(&[3.0; 16], &mut out, &mut origins);
        assert_eq!(origins, [0, 1, 4, 5]);
    }
}
