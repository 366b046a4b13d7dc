//! The Pareto front: points than which no other is further left and higher.

use super::{Panel, Point};

/// Draws the front of a panel as its reference line, in steps, and returns the names of its members.
///
/// A step says what can be had for so much: the best of all points that are no further right.
pub(super) fn mark(panel: &mut Panel) -> Vec<usize> {
    let mut points: Vec<(usize, Point)> =
        panel.lines.iter().flat_map(|line| line.points.iter().map(|point| (line.name, *point))).collect();
    points.sort_by(|(_, a), (_, b)| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    let mut members: Vec<usize> = Vec::new();
    let mut last: Option<Point> = None;
    for (name, point) in points {
        match last {
            // Two points in one place are beaten by neither.
            Some(best) if (point.x, point.y) == (best.x, best.y) => members.push(name),
            Some(best) if point.y <= best.y => {}
            _ => {
                panel.reference.extend(last.map(|best| (point.x, best.y)));
                panel.reference.push((point.x, point.y));
                members.push(name);
                last = Some(point);
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Line;

    fn front(points: &[(f64, f64)]) -> (Vec<usize>, Vec<(f64, f64)>) {
        let line = |(name, &(x, y))| Line { name, points: vec![Point { x, y, low: y, high: y }] };
        let mut panel = Panel { lines: points.iter().enumerate().map(line).collect(), ..Panel::default() };
        let members = mark(&mut panel);
        (members, panel.reference)
    }

    #[test]
    fn the_front_steps_through_the_points_that_no_other_beats_in_both() {
        let (members, line) = front(&[(3.0, 0.9), (1.0, 0.5), (2.0, 0.4), (4.0, 0.9), (1.0, 0.3), (2.0, 0.7)]);
        assert_eq!(members, [1, 5, 0]);
        assert_eq!(line, [(1.0, 0.5), (2.0, 0.5), (2.0, 0.7), (3.0, 0.7), (3.0, 0.9)]);
    }

    #[test]
    fn equal_points_are_members_alike() {
        assert_eq!(front(&[(1.0, 0.5), (1.0, 0.5)]), (vec![0, 1], vec![(1.0, 0.5)]));
        assert_eq!(front(&[]), (Vec::new(), Vec::new()));
    }
}
