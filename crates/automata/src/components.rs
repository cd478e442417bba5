//! Cycles in graphs.

/// The strongly connected components of the nodes reachable from `roots`, each after its
/// successors. Nodes are numbered from 0 to `count`.
///
/// Reference: R. Tarjan, *Depth-First Search and Linear Graph Algorithms*, SIAM Journal on
/// Computing 1(2), 1972.
pub fn components(
    count: usize,
    roots: impl IntoIterator<Item = u32>,
    children: impl Fn(u32) -> Vec<u32>,
) -> Vec<Vec<u32>> {
    let mut components = Vec::new();
    // The discovery index of each node, from 1 on, and the lowest index reachable from it (its
    // low-link).
    let (mut met, mut low) = (vec![0u32; count], vec![0u32; count]);
    let mut open = vec![false; count];
    let (mut stack, mut met_so_far) = (Vec::new(), 0);
    for root in roots {
        // The current path: a node, its children, and the number of visited children.
        let mut path: Vec<(u32, Vec<u32>, usize)> = Vec::new();
        let mut enter = (met[root as usize] == 0).then_some(root);
        loop {
            if let Some(node) = enter.take() {
                met_so_far += 1;
                (met[node as usize], low[node as usize], open[node as usize]) =
                    (met_so_far, met_so_far, true);
                stack.push(node);
                path.push((node, children(node), 0));
            }
            let Some((node, below, visited)) = path.last_mut() else { break };
            let node = *node as usize;
            if let Some(&child) = below.get(*visited) {
                *visited += 1;
                if met[child as usize] == 0 {
                    enter = Some(child);
                } else if open[child as usize] {
                    low[node] = low[node].min(met[child as usize]);
                }
                continue;
            }
            path.pop();
            if let Some((above, ..)) = path.last() {
                low[*above as usize] = low[*above as usize].min(low[node]);
            }
            if low[node] == met[node] {
                let from = stack.iter().rposition(|&other| other as usize == node).unwrap_or(0);
                let component = stack.split_off(from);
                component.iter().for_each(|&other| open[other as usize] = false);
                components.push(component);
            }
        }
    }
    components
}
